import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepCountsMs } from './queue-counts.ts'

test('a count is kept for ten times as long as it took, a costly one for 200 times, but not longer than a minute', () => {
  assert.deepEqual([1, 20, 21, 299, 5000].map(keepCountsMs), [10, 200, 4200, 59_800, 60_000])
})
