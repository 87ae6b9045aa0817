import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeHistory } from './history-parts.ts'

test('a history that is no longer divided into days is a fault', () => {
  const judge = (endMs?: number) => judgeHistory(endMs, Date.UTC(2026, 10, 28, 12))
  assert.equal(judge().ok, true)
  assert.deepEqual(judge(Date.UTC(2026, 10, 29)), {
    check: 'history',
    ok: true,
    detail: 'divided into days until 2026-11-29',
  })
  assert.equal(judge(Date.UTC(2026, 10, 28)).ok, false)
})
