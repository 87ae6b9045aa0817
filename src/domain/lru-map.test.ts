import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LruMap } from './lru-map.ts'

test('it holds what was used last, and never more than twice as much', () => {
  for (const kept of [1, 2, 5])
    for (let keys = 1; keys < 40; keys++) {
      const isHeld = (asked: number) => {
        const map = new LruMap<number, number>(kept) // a new one each time, since asking is a use
        for (let key = 0; key < keys; key++) map.set(key, key)
        return map.get(asked) !== undefined
      }
      const held = Array.from({ length: keys }, (_, key) => key).filter(isHeld).length
      assert.ok(held <= 2 * kept && held >= Math.min(keys, kept), `${held} of ${keys}, kept ${kept}`)
    }
})

test('an entry that is used again and again stays', () => {
  const map = new LruMap<string, number>(2)
  map.set('used', 1)
  map.set('unused', 2)
  for (let n = 0; n < 20; n++) {
    map.set(`other ${n}`, n)
    assert.equal(map.get('used'), 1)
  }
  assert.equal(map.get('unused'), undefined)
})

test('asking for entries that are not there drops none', () => {
  const map = new LruMap<string, number>(1)
  map.set('a', 1)
  for (let n = 0; n < 10; n++) assert.equal(map.get(`x${n}`), undefined)
  assert.equal(map.get('a'), 1)
})

test('an entry is what it was set to last, or dropped; those used last are there', () => {
  const step = fc.record({
    do: fc.constantFrom('get' as const, 'set' as const, 'delete' as const),
    key: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 200, size: 'max' }), (kept, steps) => {
      const map = new LruMap<number, number>(kept)
      const values = new Map<number, number>()
      let used: (number | 'deleted')[] = [] // the last one at the end
      const use = (key: number) => {
        used = [...used.filter((other) => other !== key), key]
      }
      const actions = {
        get: (key: number) => {
          const isThere = used.slice(-kept).includes(key)
          const found = map.get(key)
          assert.ok(found === values.get(key) || (found === undefined && !isThere))
          if (found === undefined) values.delete(key)
          else use(key)
        },
        set: (key: number, value: number) => {
          map.set(key, value)
          values.set(key, value)
          use(key)
        },
        delete: (key: number) => {
          map.delete(key)
          values.delete(key)
          used = used.map((other) => (other === key ? 'deleted' : other))
        },
      }
      for (const [value, { do: action, key }] of steps.entries()) actions[action](key, value)
    }),
  )
})
