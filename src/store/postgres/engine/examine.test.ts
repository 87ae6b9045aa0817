import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeOldestTransaction, judgeReplication } from './examine.ts'

const role = 'postern'

test('replication is a fault when a synchronous standby is configured and none is connected', () => {
  const judge = (standbys: string, synchronous: number, may_read = true) =>
    judgeReplication({ standbys, synchronous, may_read, role })
  assert.equal(judge('', 0).ok, true)
  assert.equal(judge('*', 1).ok, true)
  assert.equal(judge('*', 0).ok, false)
  const unknown = judge('*', 0, false)
  assert.equal(unknown.ok, true)
  assert.match(unknown.detail, /grant pg_read_all_stats to postern/)
})

test('a transaction that has been open for ten minutes is a fault', () => {
  const judge = (oldest: number) => judgeOldestTransaction({ oldest, may_read: true, role }).ok
  assert.deepEqual([judge(0), judge(599), judge(600)], [true, true, false])
})
