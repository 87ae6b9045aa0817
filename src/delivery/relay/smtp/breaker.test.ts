import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Breaker } from './breaker.ts'

function newBreaker() {
  const clock = { ms: 0 }
  return { clock, breaker: new Breaker({ connectionsMax: 8, now: () => clock.ms, random: () => 0.5 }) }
}

test('three failures in a row open it, a success in between does not let them add up', () => {
  const { breaker } = newBreaker()
  breaker.failed(false)
  breaker.failed(false)
  breaker.succeeded()
  breaker.failed(false)
  breaker.failed(false)
  assert.equal(breaker.capacity(), 8)
  breaker.failed(false)
  assert.equal(breaker.capacity(), 0)
})

test('a refusal of our credentials opens it at once', () => {
  const { breaker } = newBreaker()
  breaker.failed(true)
  assert.equal(breaker.capacity(), 0)
})

test('it holds 1 s, doubling to 30 s, and lets one probe through each time', () => {
  const { breaker, clock } = newBreaker()
  breaker.failed(true)
  for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
    assert.equal(breaker.probeInMs(), seconds * 1000)
    clock.ms += seconds * 1000 - 1
    assert.equal(breaker.capacity(), 0)
    clock.ms += 1
    assert.equal(breaker.capacity(), 1)
    breaker.failed(false)
  }
  clock.ms += 30_000
  breaker.succeeded()
  assert.equal(breaker.capacity(), 8)
})

test('failures that were under way when it opened do not lengthen the hold', () => {
  const { breaker } = newBreaker()
  for (let i = 0; i < 8; i++) breaker.failed(false)
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
