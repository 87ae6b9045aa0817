import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pace } from './pace.ts'

/** A relay that takes so many emails in each second, as Postern sends through it for `seconds`. */
function send(pace: Pace, limit: number, seconds: number, fromMs = 0) {
  const taken: number[] = []
  const refused: number[] = []
  let nextMs = fromMs
  while (nextMs < fromMs + seconds * 1000) {
    const inSecond = taken.filter((at) => nextMs - at < 1000).length
    if (inSecond < limit) {
      taken.push(nextMs)
      pace.accepted(nextMs)
      const rate = pace.rate(nextMs)
      nextMs += rate === null ? 1 : 1000 / rate
    } else {
      refused.push(nextMs)
      nextMs = Math.max(nextMs + 1, pace.refused(nextMs) ?? 0)
    }
  }
  return { taken, refused }
}

test('after two refusals, a relay gets what it takes in a second', () => {
  for (const limit of [5, 14, 50, 400]) {
    const { taken, refused } = send(new Pace(), limit, 10)
    assert.equal(refused.length, 2, `at ${limit} a second`)
    assert.ok(taken.length >= 0.9 * 10 * limit, `${taken.length} at ${limit} a second`)
  }
})

test('a relay that takes one a second is soon asked a few times a second', () => {
  const { refused, taken } = send(new Pace(), 1, 20)
  assert.ok(refused.length <= 25 && taken.length >= 10, `${taken.length} taken, ${refused.length} refused`)
})

test('the pace rises after ten seconds, and then ends', () => {
  const pace = new Pace()
  for (let n = 0; n < 20; n++) pace.accepted(n)
  pace.refused(20)
  pace.refused(20)
  assert.equal(pace.rate(20), 19)
  assert.equal(pace.rate(10_020), 19)
  assert.ok(Math.abs((pace.rate(11_020) ?? 0) - 19 * 1.1) < 0.001)
  assert.notEqual(pace.rate(50_000), null)
  assert.equal(pace.rate(52_000), null)
  assert.equal(pace.rate(20), null, 'it does not come back by itself')
})

test('refusals between emails that are taken set no pace: they may be about one sender', () => {
  const pace = new Pace()
  for (let n = 0; n < 10; n++) {
    assert.equal(pace.refused(n * 2000), null)
    pace.accepted(n * 2000 + 1000)
  }
  assert.equal(pace.rate(20_000), null)
})

test('few emails are no measure: the pace is halved at most, and doubles after two seconds', () => {
  const pace = new Pace()
  pace.refused(0)
  assert.equal(pace.refused(0), 1000)
  assert.equal(pace.rate(0), 5)
  pace.refused(999)
  assert.equal(pace.rate(999), 5, 'those that were on their way do not count again')
  assert.equal(pace.refused(1000), 2000)
  assert.equal(pace.rate(1000), 2.5)
  assert.equal(pace.rate(3000), 2.5)
  assert.equal(pace.rate(5000), 10)
})
