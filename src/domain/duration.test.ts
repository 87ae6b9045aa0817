import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeDuration, describeShortTime } from './duration.ts'

test('a duration is written in the largest unit of which there are two', () => {
  const second = 1000
  const texts = [-5, 0, 499, 500, 1500, 119 * second, 120 * second, 179 * second, 7140 * second, 7200 * second].map(
    (ms) => describeDuration(ms),
  )
  assert.deepEqual(texts, ['0 s', '0 s', '0 s', '1 s', '2 s', '119 s', '2 min', '3 min', '119 min', '2 h'])
  assert.equal(describeDuration(47.4 * 3_600_000), '47 h')
  assert.equal(describeDuration(48 * 3_600_000), '2 d')
})

test('a wait is rounded up', () => {
  assert.equal(describeDuration(1, 'ceil'), '1 s')
  assert.equal(describeDuration(360_001, 'ceil'), '7 min')
})

test('a short time keeps its milliseconds and tenths of a second', () => {
  const texts = [0, 84.4, 999, 1000, 2533, 9949, 10_400, 30_000, 180_000].map(describeShortTime)
  assert.deepEqual(texts, ['0 ms', '84 ms', '999 ms', '1 s', '2.5 s', '9.9 s', '10 s', '30 s', '3 min'])
})
