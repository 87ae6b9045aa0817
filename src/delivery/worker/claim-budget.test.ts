import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newTestRelay, relayTo } from '../../../test/support/service.ts'
import { startScriptedServer, startSmtpServer, testMessage } from '../../../test/support/smtp.ts'
import { newId } from '../../domain/id.ts'
import type { Claim } from '../../store/store.ts'
import type { Attempt } from '../deliver.ts'
import { aloneMs, ClaimBudget, connectionsPerApp, countCapacity } from './claim-budget.ts'
import { ClaimedEmails } from './claimed-emails.ts'

test('the connections of the first relay that is available count, and the probes of those before it', async (t) => {
  const refusing = await startScriptedServer(t, { greeting: '554 no service' })
  const working = await startSmtpServer(t)
  const relayWith = (port: number, connectionsMax: number) => newTestRelay({ ...relayTo(port), connectionsMax })
  const [first, second, third] = [relayWith(refusing.port, 5), relayWith(working.port, 3), relayWith(working.port, 7)]
  t.after(() => {
    for (const relay of [first, second, third]) relay.close()
  })
  assert.equal(countCapacity([first, second, third]), 5)
  assert.equal(countCapacity([second, third]), 3)
  await first.submit(testMessage(), { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })
  assert.equal(first.isAvailable(), false)
  assert.equal(countCapacity([first, second, third]), 3, 'no probe is due yet')
  assert.deepEqual([1, 4, 8].map(connectionsPerApp), [1, 3, 6])
})

test('a relay that refuses all mail keeps its connections if there is no other, and else counts as a probe', async (t) => {
  const refusing = await startScriptedServer(t, { rcpt: '554 sending paused' })
  const working = await startSmtpServer(t)
  const [first, second] = [newTestRelay(relayTo(refusing.port)), newTestRelay(relayTo(working.port))]
  t.after(() => {
    for (const relay of [first, second]) relay.close()
  })
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
  for (let n = 0; n < 3; n++) await first.submit(testMessage(), clearance)
  assert.equal(countCapacity([first]), first.capacity())
  assert.equal(countCapacity([first, second]), second.capacity(), 'the second comes first now')
  t.mock.method(first, 'isLast', () => false)
  assert.equal(countCapacity([first, second]), second.capacity() + 1)
})

const attemptOf = (change: Partial<Claim>, claimedAgoMs = 0): Attempt => {
  const claim = { emailId: newId('em', 0), fence: 1, appId: newId('app', 0), isSuspect: false, ...change }
  const moment = { monotonicMs: performance.now() - claimedAgoMs, wallMs: 0 }
  // Nothing else of an attempt is read here.
  return { claim: claim as Claim, claimedAt: moment, leasedAt: moment, areLeasesValid: () => true } as Attempt
}

test('beside a suspect nothing is claimed, but not for long', (t) => {
  t.mock.method(performance, 'now', () => 1_000_000)
  for (const [isSuspect, agoMs, claims] of [
    [true, 0, false],
    [true, aloneMs + 50, true],
    [false, 0, true],
  ] as const) {
    const claimed = new ClaimedEmails<Attempt>()
    claimed.add([attemptOf({ isSuspect }, agoMs)])
    assert.equal(new ClaimBudget(claimed).of(4).max > 0, claims, `${isSuspect} ${agoMs}`)
  }
})

test('a worker claims two emails for each free connection, more if the relay is fast, and none while enough wait', () => {
  const claimed = new ClaimedEmails<Attempt>()
  const budget = new ClaimBudget(claimed)
  assert.deepEqual(budget.of(4), { max: 8, perApp: 6 })
  for (let n = 0; n < 200; n++) budget.noteAttempt(1)
  assert.deepEqual(budget.of(4), { max: 47, perApp: 35 })
  claimed.add(Array.from({ length: 20 }, () => attemptOf({})))
  assert.equal(budget.of(4).max, 0)
  assert.equal(budget.of(100).max, 256)
})
