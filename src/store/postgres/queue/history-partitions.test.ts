import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dayMs } from '../../../domain/duration.ts'
import { judgePartitions } from './history-partitions.ts'

const nowMs = Date.UTC(2026, 10, 28, 12)
const judge = (days: readonly number[], restDays: number | null = null) =>
  judgePartitions(
    days.map((n) => ({ name: '', endMs: Date.UTC(2026, 10, 28) + n * dayMs })),
    restDays === null ? null : nowMs + restDays * dayMs,
    nowMs,
  )

test('the doctor reports days that are not created, not dropped, or far ahead', () => {
  const month = Array.from({ length: 33 }, (_, n) => n - 29)
  assert.equal(judge([]).ok, true)
  assert.equal(judge([], -20).ok, true, 'after an upgrade or a copy, before a worker started')
  assert.deepEqual(judge(month), { check: 'history', ok: true, detail: 'partitions until 2026-12-01' })
  assert.equal(judge(month, 600).ok, true, 'an id of a clock that was wrong')
  assert.equal(judge([-3, -2], -0.5).ok, true)
  assert.match(judge([-3, -2], -2).detail, /^no partition has been created since 2026-11-26;/)
  assert.equal(judge([-32, ...month]).ok, true)
  assert.match(judge([-34, ...month]).detail, /^the partition until 2026-10-25 has not been dropped/)
  assert.equal(judge([...month, 36]).ok, true)
  assert.match(judge([...month, 38]).detail, /^one partition lasts until 2027-01-05/)
})
