import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashDeliveryKey } from '../../domain/app/delivery-key.ts'
import { Pace } from './pace.ts'

const late = 1000
const key = hashDeliveryKey('one')
const idle = 0.5

/** A pace whose mail has been late for a second. Its clock goes on from there. */
function latePace(waitedMs = late, idleShare = idle): Pace {
  let aheadMs = 0
  const pace = new Pace({ now: () => performance.now() + aheadMs, utilization: () => 0 })
  for (; aheadMs <= 1000; aheadMs += 100) pace.noteClaim(waitedMs, idleShare)
  return pace
}

/** Requests that wait, and the numbers of those that were admitted. */
function queueUp(pace: Pace, count: number) {
  const admitted: number[] = []
  const turns = Array.from({ length: count }, async (_, n) => {
    const turn = pace.admit(key)
    assert.ok(turn !== undefined)
    await turn
    admitted.push(n)
  })
  return { admitted, all: Promise.all(turns) }
}

test('while the process delays its mail, seven requests are admitted for eight emails that end, in order', async () => {
  const pace = latePace()
  const { admitted, all } = queueUp(pace, 20)
  for (let n = 0; n < 16; n++) pace.noteEnd()
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(
    admitted,
    Array.from({ length: 14 }, (_, n) => n),
  )
  await all // once no claim says any more that mail is late
})

test('keys take turns, so that one with many requests does not delay another', async () => {
  const pace = latePace()
  const { all } = queueUp(pace, 20)
  const other = pace.admit(hashDeliveryKey('two'))
  for (let n = 0; n < 3; n++) pace.noteEnd()
  await other
  await all
})

test('requests do not wait while mail is in time, late for a moment, or late because of its relays', () => {
  // Long after the start, so that no time since 0 counts as late.
  const pace = new Pace({ now: () => 1e9, utilization: () => 0 })
  assert.equal(pace.admit(key), undefined)
  pace.noteClaim(late, idle)
  assert.equal(pace.admit(key), undefined)
  assert.equal(latePace(10, idle).admit(key), undefined)
  assert.equal(latePace(late, 0).admit(key), undefined)
})

test('emails that ended while no request waited count for 64 requests at most', async () => {
  const pace = latePace()
  for (let n = 0; n < 1000; n++) pace.noteEnd()
  const { admitted, all } = queueUp(pace, 100)
  await Promise.resolve()
  await Promise.resolve()
  assert.equal(admitted.length, 64)
  await all
})

test('an event loop that is always busy delays mail as well', async () => {
  let nowMs = 0
  const pace = new Pace({ now: () => nowMs, utilization: () => 0.9 })
  for (nowMs = 100; nowMs <= 1100; nowMs += 100) pace.noteClaim(late, 0)
  const turn = pace.admit(key)
  assert.ok(turn !== undefined)
  for (let n = 0; n < 2; n++) pace.noteEnd()
  await turn
})

test('a request that waits for two seconds is not admitted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const pace = new Pace({ now: () => nowMs })
  for (; nowMs < 1000; nowMs += 100) pace.noteClaim(late, idle)
  const turn = pace.admit(key)
  t.mock.timers.tick(2000)
  assert.equal(await turn, false)
})

test('says once that requests wait, and once that they no longer do', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const changes: boolean[] = []
  let nowMs = 0
  const pace = new Pace({ now: () => nowMs, onChange: (late) => void changes.push(late) })
  for (; nowMs <= 1000; nowMs += 100) pace.noteClaim(late, idle)
  pace.admit(key)
  pace.admit(key)
  t.mock.timers.tick(250)
  assert.deepEqual(changes, [true])
  nowMs += 1000
  t.mock.timers.tick(250)
  assert.deepEqual(changes, [true, false])
})
