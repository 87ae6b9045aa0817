import assert from 'node:assert/strict'
import { test } from 'node:test'
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
