import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newTestRelay, relayTo } from '../../../test/support/service.ts'
import { startScriptedServer, startSmtpServer, testMessage } from '../../../test/support/smtp.ts'
import { eventually } from '../../../test/support/wait.ts'
import { newId } from '../../domain/id.ts'
import type { Claim } from '../../store/store.ts'
import type { Attempt } from '../deliver.ts'
import { aloneMs, ClaimBudget, connectionsPerApp, countCapacity } from './claim-budget.ts'
import { ClaimedEmails } from './claimed-emails.ts'

const clearance = () => ({ deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })

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
  await first.submit(testMessage(), clearance())
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
  for (let n = 0; n < 3; n++) await first.submit(testMessage(), clearance())
  assert.equal(countCapacity([first]), first.capacity())
  assert.equal(countCapacity([first, second]), second.capacity(), 'the second comes first now')
  t.mock.method(first, 'isLast', () => false)
  assert.equal(countCapacity([first, second]), second.capacity() + 1)
  const down = await startScriptedServer(t, { greeting: '554 no service' })
  const third = newTestRelay(relayTo(down.port))
  await third.submit(testMessage(), clearance())
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + 2000)
  assert.equal(countCapacity([first, third]), first.capacity() + 1, 'the other one is probed')
  third.close()
})

test('emails that hang at the first relay use no connections of the second', async (t) => {
  const hanging = await startScriptedServer(t, { dot: () => {} })
  const working = await startSmtpServer(t)
  const relayWith = (port: number, connectionsMax: number) => newTestRelay({ ...relayTo(port), connectionsMax })
  const [first, second] = [relayWith(hanging.port, 2), relayWith(working.port, 3)]
  t.after(() => {
    for (const relay of [first, second]) relay.close()
  })
  let aheadMs = 0
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + aheadMs)
  const begin = () => first.submit(testMessage(), clearance())
  const begun = [begin()]
  await eventually(() => hanging.messages.length === 1)
  aheadMs = 11_000
  assert.equal(first.isStuck(), false, 'a connection is free')
  begun.push(begin())
  await eventually(() => hanging.messages.length === 2)
  assert.equal(countCapacity([first, second]), 2, 'the first is busy, and the second waits for it to fail')
  aheadMs = 22_000
  assert.equal(countCapacity([first, second]), 3 + 2)
  first.close()
  await Promise.all(begun)
  assert.equal(first.isStuck(), false)
})

test('an email that hangs at the second relay uses no connection of the first', async (t) => {
  const working = await startSmtpServer(t)
  const hanging = await startScriptedServer(t, { dot: () => {} })
  const [first, second] = [
    newTestRelay({ ...relayTo(working.port), connectionsMax: 1 }),
    newTestRelay({ ...relayTo(hanging.port), connectionsMax: 5 }),
  ]
  const begun = second.submit(testMessage(), clearance())
  await eventually(() => hanging.messages.length === 1)
  assert.equal(countCapacity([first, second]), 1 + 1)
  second.close()
  first.close()
  await begun
})

test('emails that hang at a relay use no connection of another one after its breaker opened, and none of its probe', async (t) => {
  const hanging = await startScriptedServer(t, (connection) => ({
    ...(connection < 2 ? { dot: () => {} } : { greeting: '554 no service' }),
  }))
  const working = await startSmtpServer(t)
  const [first, second] = [
    newTestRelay({ ...relayTo(hanging.port), connectionsMax: 3 }),
    newTestRelay({ ...relayTo(working.port), connectionsMax: 1 }),
  ]
  const begun = [first.submit(testMessage(), clearance()), first.submit(testMessage(), clearance())]
  await eventually(() => hanging.messages.length === 2)
  await first.submit(testMessage(), clearance())
  assert.equal(first.isAvailable(), false)
  assert.equal(countCapacity([first]), 0, 'no probe is due yet')
  assert.equal(countCapacity([first, second]), 2 + 1)
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + 2000)
  assert.equal(first.free(), 1)
  assert.equal(countCapacity([first]), 2 + 1)
  assert.equal(countCapacity([first, second]), 2 + 1 + 1)
  const { mock } = t.mock.method(second, 'free', () => -2)
  assert.equal(countCapacity([first, second]), 2 + 1, 'the second has more in progress than it may begin now')
  mock.restore()
  const probe = first.submit(testMessage(), clearance())
  assert.equal(first.free(), 0)
  assert.equal(countCapacity([first, second]), 3 + 1, 'a second probe waits for the first')
  await probe
  first.close()
  second.close()
  await Promise.all(begun)
})

test('a relay whose breaker is open is probed while the connections of the other one all hang', async (t) => {
  const hanging = await startScriptedServer(t, { dot: () => {} })
  const refusing = await startScriptedServer(t, { greeting: '554 no service' })
  const [first, second] = [
    newTestRelay({ ...relayTo(hanging.port), connectionsMax: 1 }),
    newTestRelay({ ...relayTo(refusing.port), connectionsMax: 3 }),
  ]
  await second.submit(testMessage(), clearance())
  const begun = first.submit(testMessage(), clearance())
  await eventually(() => hanging.messages.length === 1)
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + 11_000)
  assert.equal(first.isStuck(), true)
  assert.equal(countCapacity([first, second]), 1 + 1)
  first.close()
  second.close()
  await begun
})

test('a relay is not stuck while its rate makes emails wait', async (t) => {
  const working = await startSmtpServer(t)
  const relay = newTestRelay({ ...relayTo(working.port), connectionsMax: 1, rate: 0.01 })
  t.after(() => relay.close())
  const begin = () => relay.submit(testMessage(), { deadlineMs: performance.now() + 600_000, isLeaseValid: () => true })
  await begin()
  const waiting = begin()
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + 30_000)
  assert.deepEqual([relay.free(), relay.isStuck()], [0, false])
  relay.close()
  await waiting
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
