import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idFloor, isIdStart, newId, readIdTime, shortenId } from './id.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
/** The part of an id as a number. */
const read = (id: string, from: number, length: number) =>
  [...id.slice(from, from + length)].reduce((sum, digit) => sum * 32 + alphabet.indexOf(digit), 0)
const timeOf = (id: string, prefix: string) => read(id, prefix.length + 1, 10)
const sequenceOf = (id: string, prefix: string) => read(id, prefix.length + 11, 4)

test('an id is its prefix, the time, a sequence number and 12 random digits', () => {
  const at = 2_000_000_000_000
  const one = newId('app', at)
  const two = newId('app', at)
  assert.match(one, /^app_[0-9a-hjkmnp-tv-z]{26}$/)
  assert.deepEqual([timeOf(one, 'app'), sequenceOf(one, 'app')], [at, 0])
  assert.equal(readIdTime(one), at)
  assert.deepEqual([timeOf(two, 'app'), sequenceOf(two, 'app')], [at, 1])
  assert.notEqual(one.slice(-12), two.slice(-12))
  assert.equal(sequenceOf(newId('app', at + 1), 'app'), 0)
})

test('ids sort in the order they were made, also when the clock is set back', () => {
  const ids = [5, 6, 6, 2, 1, 7].map((ms) => newId('key', 3_000_000_000_000 + ms))
  assert.deepEqual(ids.toSorted(), ids)
  assert.equal(timeOf(ids[4] ?? '', 'key'), 3_000_000_000_006)
})

test('kinds do not share a clock: a request id from a fast clock does not move email ids', () => {
  const now = 5_000_000_000_000
  newId('req', now + 3_600_000)
  assert.equal(timeOf(newId('em', now), 'em'), now)
})

test('when the sequence of a millisecond is used up, the time moves on and the order holds', () => {
  const at = 7_000_000_000_000
  const atEach = () => newId('req', at)
  let last = atEach()
  for (let n = 1; n < 32 ** 4; n++) last = atEach()
  assert.deepEqual([timeOf(last, 'req'), sequenceOf(last, 'req')], [at, 32 ** 4 - 1])
  const next = atEach()
  assert.deepEqual([timeOf(next, 'req'), sequenceOf(next, 'req')], [at + 1, 0])
  assert.ok(next > last)
})

test('random digits use the whole alphabet and do not repeat', () => {
  const ids = Array.from({ length: 2000 }, () => newId('em', 0).slice(-12))
  assert.equal(new Set(ids).size, ids.length)
  assert.equal(new Set(ids.join('')).size, 32)
})

test('the floor of a time is the smallest id of that time', () => {
  const at = 6_000_000_000_000
  assert.equal(idFloor('em', at), `em_${newId('em', at).slice(3, 13)}`)
  assert.ok(idFloor('em', at) <= newId('em', at))
  assert.ok(idFloor('em', at + 1) > `em_${newId('em', at).slice(3, 13)}`)
})

test('an id is shown by its beginning, and found by that; other texts are no ids', () => {
  const id = newId('em', 1_700_000_000_000)
  assert.equal(shortenId(id), id.slice(0, 21))
  for (const text of ['production', 'em_', `${id}0`, 'em_0123', 'All apps']) assert.equal(shortenId(text), text)
  for (const start of [shortenId(id), id.slice(0, 17), id.slice(0, 28)]) assert.ok(isIdStart(start), start)
  for (const text of [id, id.slice(0, 16), `${id}0`, 'production', `em_${'0'.repeat(1000)}`])
    assert.ok(!isIdStart(text))
})
