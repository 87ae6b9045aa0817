import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LruMap } from './lru-map.ts'

test('the entry that was used least recently is dropped', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  assert.equal(map.get('a'), 1)
  map.set('c', 3)
  assert.deepEqual([map.get('a'), map.get('b'), map.get('c')], [1, undefined, 3])
})

test('replacing an entry of a full map drops no other', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('b', 9)
  assert.deepEqual([map.get('a'), map.get('b')], [1, 9])
})

test('a replaced entry counts as used', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 1)
  map.set('c', 3)
  assert.deepEqual([map.get('a'), map.get('b')], [1, undefined])
})

test('asking for an entry that is not there takes no place', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  assert.equal(map.get('x'), undefined)
  map.set('b', 2)
  assert.deepEqual([map.get('a'), map.get('b')], [1, 2])
})

test('a deleted entry leaves its place', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.delete('b')
  map.set('c', 3)
  assert.deepEqual([map.get('a'), map.get('b'), map.get('c')], [1, undefined, 3])
})

test('it holds what a list in the order of use holds, whatever is done', () => {
  const step = fc.record({ do: fc.constantFrom('set', 'get', 'delete'), key: fc.nat(9) })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
      const map = new LruMap<number, number>(max)
      let list: { key: number; value: number }[] = []
      for (const [value, { do: action, key }] of steps.entries()) {
        const known = list.find((entry) => entry.key === key)
        if (action === 'get') assert.equal(map.get(key), known?.value)
        if (action === 'set') map.set(key, value)
        if (action === 'delete') map.delete(key)
        const others = list.filter((entry) => entry !== known)
        if (action === 'delete') list = others
        if (action === 'set') list = [...others.slice(Math.max(0, others.length - max + 1)), { key, value }]
        if (action === 'get' && known !== undefined) list = [...others, known]
      }
      for (let key = 0; key < 10; key++)
        assert.equal(map.get(key), list.find((entry) => entry.key === key)?.value)
    }),
  )
})
