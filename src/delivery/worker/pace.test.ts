import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../store/store.ts'
import { Pace } from './pace.ts'

const late = 1000
const idle = 0.5

/** Requests that wait, and the numbers of those that were admitted. */
function queueUp(pace: Pace, count: number) {
  const admitted: number[] = []
  const turns = Array.from({ length: count }, async (_, n) => {
    const turn = pace.admit()
    assert.ok(turn !== null)
    await turn
    admitted.push(n)
  })
  return { admitted, all: Promise.all(turns) }
}

test('while mail is late by the process, seven requests are admitted for eight outcomes, in order', async () => {
  const pace = new Pace()
  pace.noteClaim(late, idle)
  const { admitted, all } = queueUp(pace, 20)
  for (let n = 0; n < 16; n++) pace.noteOutcome()
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(
    admitted,
    Array.from({ length: 14 }, (_, n) => n),
  )
  await all // once no claim says any more that mail is late
})

test('requests do not wait while mail is in time, or while its relays are what delays it', () => {
  const pace = new Pace()
  assert.equal(pace.admit(), null)
  pace.noteClaim(10, idle)
  assert.equal(pace.admit(), null)
  pace.noteClaim(late, 0)
  assert.equal(pace.admit(), null)
})

test('a pause in delivery is not followed by a burst', async () => {
  const pace = new Pace()
  for (let n = 0; n < 1000; n++) pace.noteOutcome()
  pace.noteClaim(late, idle)
  const { admitted, all } = queueUp(pace, 100)
  await Promise.resolve()
  await Promise.resolve()
  assert.equal(admitted.length, 64)
  await all
})

test('a request that waits for two seconds is answered that the queue is unavailable', async () => {
  const pace = new Pace()
  pace.noteClaim(late, idle)
  const again = setInterval(() => pace.noteClaim(late, idle), 50)
  await assert.rejects(pace.admit() ?? Promise.resolve(), StoreUnavailable)
  clearInterval(again)
})
