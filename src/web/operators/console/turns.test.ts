import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newTurns } from './turns.ts'

const turnMs = 60_000

/** Turns that the test ends, at its end at the latest, and what has begun. */
function startTurns(t: TestContext, max: number, count: number) {
  const rests: number[] = []
  const rested = Promise.withResolvers<void>()
  const rest = (ms: number) => {
    rests.push(ms)
    return rested.promise
  }
  const takeTurn = newTurns(max, { rest, turnMs })
  const begun: number[] = []
  const turns = Array.from({ length: count }, (_, n) => {
    const end = Promise.withResolvers<number>()
    const done = takeTurn(() => {
      begun.push(n)
      return end.promise
    })
    return { end, done }
  })
  t.after(() => {
    rested.resolve()
    for (const { end } of turns) end.resolve(0)
  })
  return { begun, rested, rests, takeTurn, turns }
}

test('two pages are drawn at a time, and the others in their order, each after a rest', async (t) => {
  const { begun, rested, rests, turns } = startTurns(t, 2, 4)
  await setImmediate()
  assert.deepEqual(begun, [0, 1])
  turns[1]?.end.resolve(1)
  assert.equal(await turns[1]?.done, 1, 'its reader does not wait for the rest')
  await setImmediate()
  assert.deepEqual([begun, rests.length], [[0, 1], 1])
  rested.resolve()
  await setImmediate()
  assert.deepEqual(begun, [0, 1, 2])
})

test('nobody rests while nobody waits, and a page that fails ends its turn', async (t) => {
  const { begun, rests, takeTurn, turns } = startTurns(t, 1, 1)
  turns[0]?.end.reject(new Error('failed'))
  await assert.rejects(turns[0]?.done ?? Promise.resolve(), /failed/)
  await setImmediate()
  assert.equal(await takeTurn(() => 'next'), 'next')
  assert.deepEqual([begun, rests], [[0], []])
})

test('a page that waits for the database for long ends its turn, once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { begun, rested, takeTurn, turns } = startTurns(t, 1, 2)
  rested.resolve()
  t.mock.timers.tick(turnMs)
  await setImmediate()
  assert.deepEqual(begun, [0, 1])
  for (const { end } of turns) end.resolve(1)
  await Promise.all(turns.map(({ done }) => done))
  let busy = 0
  const draw = () =>
    takeTurn(async () => {
      busy += 1
      await setImmediate()
      assert.equal(busy--, 1, 'one at a time')
    })
  await Promise.all([draw(), draw(), draw()])
})
