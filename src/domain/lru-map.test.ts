import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LruMap } from './lru-map.ts'

/** The newest keys first, so that those which are read do not push out those which are not yet. */
const countHeld = (map: LruMap<number, number>, keys: number): number =>
  Array.from({ length: keys }, (_, n) => map.get(keys - 1 - n)).filter((value) => value !== undefined).length

test('it holds half of its bound at least, and never more than its bound', () => {
  for (const max of [2, 3, 10, 11])
    for (let keys = 1; keys < 100; keys++) {
      const map = new LruMap<number, number>(max)
      for (let key = 0; key < keys; key++) map.set(key, key)
      const held = countHeld(map, keys)
      assert.ok(
        held <= max && held >= Math.min(keys, Math.floor(max / 2)),
        `${held} of ${keys}, bound ${max}`,
      )
    }
})

test('an entry that is used again and again stays', () => {
  const map = new LruMap<string, number>(4)
  map.set('used', 1)
  map.set('unused', 2)
  for (let n = 0; n < 20; n++) {
    map.set(`other ${n}`, n)
    assert.equal(map.get('used'), 1)
  }
  assert.equal(map.get('unused'), undefined)
})

test('asking for entries that are not there drops none', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  for (let n = 0; n < 10; n++) assert.equal(map.get(`x${n}`), undefined)
  assert.equal(map.get('a'), 1)
})

test('an entry is what it was set to last, or dropped; those used last are there', () => {
  const step = fc.record({ do: fc.constantFrom('set', 'get', 'delete'), key: fc.nat(9) })
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 9 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
      const map = new LruMap<number, number>(max)
      let list: { key: number; value: number }[] = []
      for (const [value, { do: action, key }] of steps.entries()) {
        const known = list.findLast((entry) => entry.key === key)
        const others = list.filter((entry) => entry !== known)
        if (action === 'get') {
          const found = map.get(key)
          const surely = list.slice(-Math.floor(max / 2)).includes(known as never)
          assert.ok(surely ? found === known?.value : found === undefined || found === known?.value)
          list = found === undefined ? others : [...others, known as never]
        }
        if (action === 'set') map.set(key, value)
        if (action === 'set') list = [...others, { key, value }]
        if (action === 'delete') map.delete(key)
        if (action === 'delete') list = others
      }
    }),
  )
})
