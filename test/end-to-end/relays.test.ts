/** Several relays, slow relays and the shutdown of a worker: one of them must not hold up the others. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import {
  newSender,
  newTestRelay,
  relayTo,
  startTestService,
  type TestService,
  testSettings,
  validBody,
} from '../support/service.ts'
import { drop, startScriptedServer, startSmtpServer, testMessage } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

let serial = 0

async function post(service: TestService, change: Record<string, unknown> = {}, key = service.key): Promise<EmailId> {
  const body = validBody({ to: `r${serial++}@example.com`, ...change }, service.store.now())
  const answer = await service.post(body, { authorization: `Bearer ${key}` })
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  return answer.headers.get('email-id') as EmailId
}

const state = async (service: TestService, id: EmailId) => (await service.store.findEmail(id))?.state

test('a first relay that hangs holds up its probe alone, not the mail', async (t) => {
  const hung: Socket[] = []
  const first = await startScriptedServer(t, (connection) =>
    connection === 0 ? { greeting: drop } : { greeting: (socket) => void hung.push(socket) },
  )
  const second = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(first.port), relayTo(second.port)] })
  await post(service)
  await eventually(() => second.received.length === 1) // from now on the first one is only probed
  await eventually(async () => hung.length > 0 || !(await post(service)))
  const probe = hung[0]
  const ids = await Promise.all(Array.from({ length: 10 }, () => post(service)))
  await eventually(async () =>
    (await Promise.all(ids.map((id) => state(service, id)))).every((now) => now === 'delivered'),
  )
  assert.equal(probe?.destroyed, false, 'the probe still hung')
  await service.stop({ graceMs: 0 })
})

test('a relay’s bound on connections holds when another fails over to it', async (t) => {
  const down = await startScriptedServer(t, { greeting: '554 no service' })
  const open = { now: 0, most: 0 }
  const bounded = await startScriptedServer(t, {
    greeting: (socket) => {
      open.most = Math.max(open.most, ++open.now)
      socket.once('close', () => --open.now)
      socket.write('220 ready\r\n')
    },
  })
  const relays = [
    { ...relayTo(down.port), connectionsMax: 20 },
    { ...relayTo(bounded.port), connectionsMax: 2 },
  ]
  const service = await startTestService(t, { relays })
  const ids = await Promise.all(Array.from({ length: 40 }, () => post(service)))
  await eventually(async () =>
    (await Promise.all(ids.map((id) => state(service, id)))).every((now) => now === 'delivered'),
  )
  assert.ok(open.most <= 2, `${open.most} connections at once`)
})

test('one app’s flood leaves a quarter of the connections to the others', async (t) => {
  const held: Socket[] = []
  const relay = await startScriptedServer(t, { dot: (socket) => void held.push(socket) })
  const service = await startTestService(t, { relays: [{ ...relayTo(relay.port), connectionsMax: 8 }] })
  await Promise.all(Array.from({ length: 60 }, () => post(service)))
  await eventually(() => held.length === 6)
  const other = await newSender(service, 'other')
  for (let i = 0; i < 2; i++) await post(service, {}, other.key)
  await eventually(() => held.length === 8)
  assert.equal(relay.messages.filter((message) => message.includes(':other:')).length, 2)
  for (const socket of held) socket.write('250 2.0.0 taken\r\n')
})

test('row 23: a greeting that trickles for ever is given up, and the link expires in time', async (t) => {
  const relay = await startScriptedServer(t, {
    ehlo: (socket) => {
      const drip = setInterval(() => socket.write('250-and more\r\n'), 20)
      socket.once('close', () => clearInterval(drip))
    },
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const id = await post(service, { expiresAt: new Date(service.store.now() + 1500).toISOString() })
  await eventually(async () => (await state(service, id)) === 'expired')
})

test('row 32: what the grace period does not suffice for is recorded before the store closes', async (t) => {
  const relay = await startScriptedServer(t, { dot: () => {} })
  const service = await startTestService(t, {
    relays: [{ ...relayTo(relay.port), connectionsMax: 4, rate: 2 }],
  })
  const ids = await Promise.all(Array.from({ length: 4 }, () => post(service)))
  await eventually(() => relay.messages.length === 1)
  await service.stop({ graceMs: 50 })
  const sent = relay.messages.length
  const { openStore } = await import('../../src/compose/store.ts')
  const store = await openStore(service.config, { onFatal: assert.fail })
  const records = await Promise.all(ids.map((id) => store.findEmail(id)))
  await store.close()
  const ambiguous = records.filter((record) => record?.state === 'deferred' && record.trail.at(-1)?.ambiguous === true)
  assert.equal(ambiguous.length, sent)
  const rest = records.filter((record) => record?.state === 'queued' && record.attempts === 0)
  assert.equal(rest.length, ids.length - sent)
})

test('links that expire before their turn take no turn of others from a relay with a rate', async (t) => {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, {
    relays: [{ ...relayTo(relay.port), connectionsMax: 60, rate: 1 }],
    settings: { limits: { ...testSettings.limits, recipientPerHour: 1000, keyPerMinute: 1000 } },
  })
  const expiresAt = new Date(service.store.now() + 5000).toISOString()
  await Promise.all(Array.from({ length: 50 }, () => post(service, { expiresAt })))
  const other = await newSender(service, 'other')
  await service.post(validBody({ to: 'late@example.com' }, service.store.now()), {
    authorization: `Bearer ${other.key}`,
  })
  // Each of the fifty would have taken a second.
  await eventually(() => relay.received.some(({ to }) => to.includes('late@example.com')))
})

test('a relay that turns one connection away and serves the others stays available', async (t) => {
  const open = { now: 0, refused: 0 }
  const relay = await startScriptedServer(t, {
    greeting: (socket) => {
      if (open.now >= 4) {
        open.refused += 1
        socket.end('421 4.7.0 too many connections\r\n')
        return
      }
      open.now += 1
      socket.once('close', () => --open.now)
      socket.write('220 ready\r\n')
    },
  })
  const service = await startTestService(t, { relays: [{ ...relayTo(relay.port), connectionsMax: 8 }] })
  const others = await Promise.all(['b', 'c', 'd'].map((slug) => newSender(service, slug)))
  const keys = [service.key, ...others.map(({ key }) => key)]
  for (let burst = 0; burst < 5; burst++) {
    const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => post(service, {}, keys[n % 4])))
    await eventually(async () =>
      (await Promise.all(ids.map((id) => state(service, id)))).every((now) => now === 'delivered'),
    )
  }
  assert.ok(open.refused > 0, 'the limit was met')
  assert.deepEqual(
    service.log.filter((line) => line.includes('unavailable')),
    [],
  )
})

test('a relay that refuses its only connection with 4xx is tried three times before it is unavailable', async (t) => {
  const relay = await startScriptedServer(t, (connection) => (connection < 2 ? { greeting: '421 4.3.2 busy' } : {}))
  const service = await startTestService(t, { relays: [{ ...relayTo(relay.port), connectionsMax: 1 }] })
  const id = await post(service)
  await eventually(async () => (await state(service, id)) === 'delivered')
  assert.ok(!service.log.some((line) => line.includes('the relay is unavailable')))
})

test('a relay that is unavailable is probed once at a time, also while an old session hangs', async (t) => {
  const server = await startScriptedServer(t, (connection) => {
    if (connection === 0) return { dot: () => {} }
    return connection < 4 ? { greeting: drop } : { greeting: '421 4.3.2 busy' }
  })
  const relay = newTestRelay(relayTo(server.port))
  atEnd(t, () => relay.close())
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
  const submit = () => relay.submit(testMessage(), clearance)
  void submit()
  await eventually(() => server.messages.length === 1)
  for (let n = 0; n < 3; n++) await submit()
  assert.equal(relay.isAvailable(), false)
  await eventually(() => relay.capacity() === 1) // a probe is due
  await submit()
  assert.equal(server.connections(), 5)
  assert.equal(relay.capacity(), 0, 'the next probe is later')
})

test('a session is busy while it sends, and stays open', async (t) => {
  const held: Socket[] = []
  const server = await startScriptedServer(t, { dot: (socket) => void held.push(socket) })
  const relay = newTestRelay(relayTo(server.port))
  atEnd(t, () => relay.close())
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
  const count = () => {
    const { busy, connecting, open } = relay.connections()
    return { busy, connecting, open }
  }
  const submission = relay.submit(testMessage(), clearance)
  await eventually(() => held.length === 1)
  assert.deepEqual(count(), { busy: 1, connecting: 0, open: 1 })
  held[0]?.write('250 2.0.0 taken\r\n')
  await submission
  assert.deepEqual(count(), { busy: 0, connecting: 0, open: 1 })
})
