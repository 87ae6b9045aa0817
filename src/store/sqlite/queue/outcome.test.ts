import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trailMax } from '../../../domain/bounds.ts'
import type { AttemptRecord } from '../../../domain/delivery/outcome.ts'
import { appendTrail } from './outcome.ts'

test('a trail keeps its newest attempts, as many as its bound', () => {
  const attempt = (at: number) => ({ at, outcome: 'deferred' }) as AttemptRecord
  let trail = '[]'
  for (let at = 1; at <= trailMax; at++) trail = appendTrail(trail, attempt(at))
  assert.equal(JSON.parse(trail).length, trailMax)
  const kept = JSON.parse(appendTrail(trail, attempt(trailMax + 1))) as AttemptRecord[]
  assert.deepEqual([kept.length, kept[0]?.at, kept.at(-1)?.at], [trailMax, 2, trailMax + 1])
  assert.equal(appendTrail(trail, null), trail)
})
