import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashDeliveryKey } from '../../domain/app/delivery-key.ts'
import { Backpressure } from './backpressure.ts'

const waited = 1000
const key = hashDeliveryKey('one')
const idle = 0.5

/** Mail has been delayed for a second. Its clock goes on from there. */
function newBackpressure(waitedMs = waited, idleShare = idle): Backpressure {
  let aheadMs = 0
  const backpressure = new Backpressure({ now: () => performance.now() + aheadMs, utilization: () => 0 })
  for (; aheadMs <= 1000; aheadMs += 100) backpressure.noteClaim(waitedMs, idleShare)
  return backpressure
}

/** Requests that wait, and the numbers of those that went on. */
function queueUp(backpressure: Backpressure, count: number) {
  const released: number[] = []
  const turns = Array.from({ length: count }, async (_, n) => {
    const turn = backpressure.waitForTurn(key)
    assert.ok(turn !== undefined)
    await turn
    released.push(n)
  })
  return { released, all: Promise.all(turns) }
}

test('while the process delays its mail, seven requests go on for eight emails that end, in order', async () => {
  const backpressure = newBackpressure()
  const { released, all } = queueUp(backpressure, 20)
  for (let n = 0; n < 16; n++) backpressure.noteEnd()
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(
    released,
    Array.from({ length: 14 }, (_, n) => n),
  )
  await all // once no claim says any more that mail is delayed
})

test('keys take turns, so that one with many requests does not delay another', async () => {
  const backpressure = newBackpressure()
  const { all } = queueUp(backpressure, 20)
  const other = backpressure.waitForTurn(hashDeliveryKey('two'))
  for (let n = 0; n < 3; n++) backpressure.noteEnd()
  await other
  await all
})

test('requests do not wait while mail is in time, delayed for a moment, or delayed because of its relays', () => {
  // Long after the start, so that no time since 0 counts as a delay.
  const backpressure = new Backpressure({ now: () => 1e9, utilization: () => 0 })
  assert.equal(backpressure.waitForTurn(key), undefined)
  backpressure.noteClaim(waited, idle)
  assert.equal(backpressure.waitForTurn(key), undefined)
  assert.equal(newBackpressure(10, idle).waitForTurn(key), undefined)
  assert.equal(newBackpressure(waited, 0).waitForTurn(key), undefined)
})

test('emails that ended while no request waited count for 64 requests at most', async () => {
  const backpressure = newBackpressure()
  for (let n = 0; n < 1000; n++) backpressure.noteEnd()
  const { released, all } = queueUp(backpressure, 100)
  await Promise.resolve()
  await Promise.resolve()
  assert.equal(released.length, 64)
  await all
})

test('while a claim is made, requests wait as long as the claims before it had shown delays', () => {
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, utilization: () => 0 })
  const waits = () => backpressure.waitForTurn(key) !== undefined
  const claim = (tookMs: number, waitedMs: number) => {
    backpressure.noteClaimBegins()
    nowMs += tookMs
    const waited = waits()
    backpressure.noteClaim(waitedMs, idle)
    return waited
  }
  for (let n = 0; n <= 10; n++) claim(100, waited)
  assert.ok(claim(5000, waited))
  assert.ok(waits()) // the same delay as before, not a new one
  assert.ok(claim(5000, 0))
  assert.ok(!waits())
  assert.ok(!claim(5000, 0))
})

test('claims that show no delay prolong none, however often they are made', () => {
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, utilization: () => 0 })
  for (; nowMs <= 1000; nowMs += 100) backpressure.noteClaim(waited, idle)
  for (let n = 0; n < 30; n++) {
    backpressure.noteClaimBegins()
    nowMs += 10
    backpressure.noteClaim(0, 0)
  }
  assert.equal(backpressure.waitForTurn(key), undefined)
})

test('an event loop that is always busy delays mail as well', async () => {
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, utilization: () => 0.9 })
  for (nowMs = 100; nowMs <= 1100; nowMs += 100) backpressure.noteClaim(waited, 0)
  const turn = backpressure.waitForTurn(key)
  assert.ok(turn !== undefined)
  for (let n = 0; n < 2; n++) backpressure.noteEnd()
  await turn
})

test('at rest the event loop is not measured', () => {
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, utilization: () => assert.fail('measured') })
  for (nowMs = 100; nowMs <= 1100; nowMs += 100) backpressure.noteClaim(0, idle)
})

test('a request that waits for two seconds does not go on', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs })
  for (; nowMs < 1000; nowMs += 100) backpressure.noteClaim(waited, idle)
  const turn = backpressure.waitForTurn(key)
  t.mock.timers.tick(2000)
  assert.equal(await turn, false)
})

test('says once that requests wait, and once that they no longer do', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const changes: boolean[] = []
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, onChange: (active) => void changes.push(active) })
  for (; nowMs <= 1000; nowMs += 100) backpressure.noteClaim(waited, idle)
  backpressure.waitForTurn(key)
  backpressure.waitForTurn(key)
  t.mock.timers.tick(250)
  assert.deepEqual(changes, [true])
  nowMs += 1000
  t.mock.timers.tick(250)
  assert.deepEqual(changes, [true, false])
})

test('requests that have given up take no turn from those that still wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const backpressure = new Backpressure({ now: () => nowMs, utilization: () => 0 })
  for (; nowMs < 1000; nowMs += 100) backpressure.noteClaim(waited, idle)
  const gone = [backpressure.waitForTurn(key), backpressure.waitForTurn(key)]
  t.mock.timers.tick(2000)
  assert.deepEqual(await Promise.all(gone), [false, false])
  backpressure.noteClaim(waited, idle)
  const turn = backpressure.waitForTurn(key)
  for (let n = 0; n < 2; n++) backpressure.noteEnd()
  assert.equal(await turn, true)
})
