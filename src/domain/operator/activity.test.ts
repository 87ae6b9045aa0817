import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ActivityEvent, countsBelow, tookAtMost, tookBucket } from './activity.ts'

const counts = (entries: Partial<Record<ActivityEvent, number>>) =>
  new Map(Object.entries(entries) as [ActivityEvent, number][])

test('a time falls into the bucket whose bound it does not exceed', () => {
  assert.deepEqual([0, 10, 11, 3_600_000, 3_600_001].map(tookBucket), [
    'took:10',
    'took:10',
    'took:50',
    'took:3600000',
    'took:more',
  ])
})

test('the time of a share of the emails is the bound of its bucket', () => {
  const some = counts({ 'took:10': 50, 'took:100': 45, 'took:5000': 5, delivered: 100 })
  assert.deepEqual(
    [0.5, 0.95, 0.96, 1].map((share) => tookAtMost(some, share)),
    [10, 100, 5000, 5000],
  )
  assert.equal(tookAtMost(counts({ delivered: 3 }), 0.5), null)
  assert.equal(tookAtMost(counts({ 'took:10': 1, 'took:more': 3 }), 0.5), null)
})

test('counts are listed by the names below a prefix', () => {
  const some = counts({ 'refused:invalid_url': 2, 'failed:unreadable': 1, 'reply:451 4.7.1': 4, expired: 9 })
  assert.deepEqual(countsBelow(some, 'refused'), { invalid_url: 2 })
  assert.deepEqual(countsBelow(some, 'reply'), { '451 4.7.1': 4 })
})
