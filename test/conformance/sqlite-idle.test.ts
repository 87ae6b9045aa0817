/** SQLite alone: claims of an empty queue. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Claim } from '../../src/store/store.ts'
import { newRing } from '../support/service.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { delivered, newSender, request } from './subject.ts'

test('a claim of an empty queue asks the writer only if somebody has written, or once a second', async (t) => {
  let groups = 0
  const claimed: Claim[] = []
  const options = {
    path: join(temporaryFolder(t), 'postern.db'),
    ring: newRing(),
    queueMax: 1000,
    onFatal: assert.fail,
  }
  const store = await openSqliteStore({ ...options, onGroup: () => void groups++ })
  atEnd(t, () => store.close())
  const other = await openSqliteStore(options)
  atEnd(t, () => other.close())
  // No second passes by itself on a slow machine. Whole numbers, so that a second more is not a bit less.
  let nowMs = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => nowMs)
  const claim = async () => {
    const before = groups
    const { claims } = await store.claimDue({ max: 9, perApp: 9, leases: [] })
    claimed.push(...claims)
    return [claims.length, groups - before]
  }
  assert.deepEqual(
    [await claim(), await claim(), await claim()],
    [
      [0, 1],
      [0, 0],
      [0, 0],
    ],
  )
  const sender = await newSender(other, 'a')
  await other.enqueue(request(other, sender))
  assert.deepEqual(await claim(), [1, 1], 'of another process')
  const besideIt = [await claim(), await claim(), await claim()]
  assert.deepEqual(
    besideIt,
    [
      [0, 1],
      [0, 1],
      [0, 1],
    ],
    'a queue with mail that is being sent is not empty',
  )
  const [held] = claimed
  assert.ok(held)
  await store.recordOutcome(held, delivered)
  assert.deepEqual(
    [await claim(), await claim()],
    [
      [0, 1],
      [0, 0],
    ],
  )
  nowMs += 1000
  assert.deepEqual(await claim(), [0, 1])
})
