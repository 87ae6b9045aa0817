import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Breaker } from './breaker.ts'

const transient = { lasting: false, answered: false }

function newBreaker() {
  const clock = { ms: 0 }
  return { clock, breaker: new Breaker({ connectionsMax: 8, now: () => clock.ms, random: () => 0.5 }) }
}

test('three failures in a row open it, a success in between does not let them add up', () => {
  const { breaker } = newBreaker()
  breaker.succeeded()
  breaker.failed(transient)
  breaker.failed(transient)
  breaker.succeeded()
  breaker.failed(transient)
  breaker.failed(transient)
  assert.equal(breaker.capacity(), 8)
  breaker.failed(transient)
  assert.equal(breaker.capacity(), 0)
})

test('one failure without an answer opens it if nothing has passed for ten seconds', () => {
  const { breaker, clock } = newBreaker()
  breaker.succeeded()
  clock.ms = 9999
  breaker.failed(transient)
  assert.equal(breaker.capacity(), 8)
  breaker.succeeded()
  clock.ms += 10_000
  breaker.failed({ lasting: false, answered: true })
  assert.equal(breaker.capacity(), 8)
  breaker.failed(transient)
  assert.equal(breaker.capacity(), 0)
})

test('a refusal of our credentials opens it at once', () => {
  const { breaker } = newBreaker()
  breaker.failed({ lasting: true, answered: true })
  assert.equal(breaker.capacity(), 0)
})

test('a lasting refusal beside mail that is taken counts as one failure', () => {
  const { breaker, clock } = newBreaker()
  breaker.succeeded()
  clock.ms = 9999
  breaker.failed({ lasting: true, answered: true })
  breaker.failed({ lasting: true, answered: true })
  assert.equal(breaker.capacity(), 8)
  breaker.failed({ lasting: true, answered: true })
  assert.equal(breaker.capacity(), 0)
})

test('it holds 1 s, doubling to 10 s, and lets one probe through each time', () => {
  const { breaker, clock } = newBreaker()
  breaker.failed({ lasting: true, answered: true })
  for (const seconds of [1, 2, 4, 8, 10, 10]) {
    assert.equal(breaker.probeInMs(), seconds * 1000)
    clock.ms += seconds * 1000 - 1
    assert.equal(breaker.capacity(), 0)
    clock.ms += 1
    assert.equal(breaker.capacity(), 1)
    breaker.failed(transient)
  }
  clock.ms += 10_000
  breaker.succeeded()
  assert.equal(breaker.capacity(), 8)
})

test('failures that were under way when it opened do not lengthen the hold', () => {
  const { breaker } = newBreaker()
  for (let i = 0; i < 8; i++) breaker.failed(transient)
  assert.equal(breaker.probeInMs(), 1000)
})

test('asked to slow down it halves its connections, and gets them back one by one', () => {
  const { breaker } = newBreaker()
  breaker.slowDown()
  breaker.slowDown()
  assert.equal(breaker.capacity(), 2)
  for (let i = 0; i < 20; i++) breaker.succeeded()
  assert.equal(breaker.capacity(), 3)
  for (let i = 0; i < 1000; i++) breaker.succeeded()
  assert.equal(breaker.capacity(), 8)
})

test('a probe that fails opens it again at once, whatever the fault, and however few failures there were', () => {
  const { breaker, clock } = newBreaker()
  breaker.failed({ lasting: true, answered: true })
  clock.ms += 1000
  breaker.failed({ lasting: false, answered: true })
  assert.equal(breaker.probeInMs(), 2000)
})

test('three refusals in a row make a relay the last one, if it has taken nothing for ten seconds', () => {
  const { breaker, clock } = newBreaker()
  breaker.succeeded()
  clock.ms = 9999
  for (let n = 0; n < 5; n++) breaker.refused({ works: true })
  assert.equal(breaker.refuses, false, 'it took an email lately')
  clock.ms = 10_000
  breaker.refused({ works: true })
  assert.deepEqual([breaker.refuses, breaker.isLast(), breaker.capacity()], [true, true, 8])
  clock.ms += 4999
  assert.equal(breaker.isLast(), true)
  clock.ms += 1
  assert.deepEqual([breaker.refuses, breaker.isLast()], [true, false], 'one email tries it')
  breaker.answered()
  assert.equal(breaker.refuses, true, 'the refusal of a recipient says nothing of other mail')
  breaker.succeeded()
  assert.equal(breaker.refuses, false)
  clock.ms += 10_000
  breaker.refused({ works: true })
  breaker.refused({ works: true })
  assert.equal(breaker.refuses, false, 'they count from the start again')
})

test('a relay that ends the connection of its probe stays closed to others', () => {
  const { breaker, clock } = newBreaker()
  breaker.failed({ lasting: true, answered: true })
  clock.ms = 1000
  breaker.refused({ works: false })
  assert.equal(breaker.open, true)
  breaker.refused({ works: true })
  assert.equal(breaker.open, false)
})
