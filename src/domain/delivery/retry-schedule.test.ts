import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { retryForMs } from '../bounds.ts'
import { nextAttemptMs, retryDelayMs } from './retry-schedule.ts'

const day = 86_400_000

test('5 s, 15 s, 45 s, 2 min, 5 min, ten minutes for two hours, then hourly', () => {
  const minutes = Array.from({ length: 20 }, (_, index) => retryDelayMs(index + 1) / 60_000)
  assert.deepEqual(minutes, [5 / 60, 15 / 60, 45 / 60, 2, 5, ...Array(12).fill(10), 60, 60, 60])
})

test('spread by a fifth either way', () => {
  const at = (random: number) => nextAttemptMs({ attempts: 5, ageMs: 0, lifeLeftMs: day, random })
  assert.equal(at(0), 240_000)
  assert.equal(at(0.5), 300_000)
  assert.equal(at(1), 360_000)
})

test('fitted into the life that is left, and never past it', () => {
  const inputs = fc.record({
    attempts: fc.integer({ min: 1, max: 100 }),
    lifeLeftMs: fc.integer({ min: 0, max: day }),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  })
  fc.assert(
    fc.property(inputs, (input) => {
      const next = nextAttemptMs({ ...input, ageMs: 0 })
      assert.ok(next !== null && next <= input.lifeLeftMs)
      if (input.lifeLeftMs > 10_000) assert.ok(next <= input.lifeLeftMs / 2 + 1, 'room for another one')
    }),
  )
})

test('a link of five minutes gets at least seven attempts', () => {
  let [elapsed, attempts] = [0, 1]
  while (elapsed < 300_000 - 1000) {
    elapsed += nextAttemptMs({ attempts, ageMs: elapsed, lifeLeftMs: 300_000 - elapsed, random: 0.5 }) ?? Infinity
    if (elapsed < 300_000) attempts += 1
  }
  assert.ok(attempts >= 7, `${attempts} attempts`)
})

// 1 s, doubled with each attempt, until the usual wait is shorter: at the eleventh.
test('a relay that asked to slow down, or was busy, is asked again soon at first, and later as usual', () => {
  const waits = [1, 2, 3, 10, 11, 17].map((attempts) =>
    nextAttemptMs({ attempts, ageMs: 0, lifeLeftMs: day, random: 0.5, isSoon: true }),
  )
  assert.deepEqual(waits, [1000, 2000, 4000, 512_000, 600_000, 600_000])
  assert.equal(nextAttemptMs({ attempts: 9, ageMs: 0, lifeLeftMs: 100_000, random: 0.5, isSoon: true }), 50_000)
  assert.equal(nextAttemptMs({ attempts: 1, ageMs: 0, lifeLeftMs: 900, random: 0.5, isSoon: true }), 500)
})

test('nothing after 48 hours', () => {
  assert.equal(nextAttemptMs({ attempts: 60, ageMs: retryForMs - 1000, lifeLeftMs: day, random: 0.5 }), null)
})

test('the attempt at exactly 48 hours is not made, and the shortest wait is 2 s', () => {
  const email = { attempts: 1, lifeLeftMs: day, random: 0.5 }
  assert.equal(nextAttemptMs({ ...email, ageMs: retryForMs - 5001 }), 5000)
  assert.equal(nextAttemptMs({ ...email, ageMs: retryForMs - 5000 }), null)
  assert.equal(nextAttemptMs({ ...email, ageMs: 0, lifeLeftMs: 3000 }), 2000)
  assert.equal(nextAttemptMs({ ...email, ageMs: 0, lifeLeftMs: 1500 }), 1500)
  assert.equal(nextAttemptMs({ ...email, ageMs: 0, lifeLeftMs: -1 }), 0)
})
