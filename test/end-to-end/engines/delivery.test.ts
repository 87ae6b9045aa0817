/**
 * From the queue to a relay, over real sockets: each reply or fault of a relay and its outcome.
 * Most tests are named after rows 22 to 33 of the fault matrix.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { TLSSocket } from 'node:tls'
import PostalMime from 'postal-mime'
import { isLeaseValid } from '../../../src/delivery/deliver.ts'
import { SmtpSession } from '../../../src/delivery/relay/smtp/smtp-session.ts'
import type { App } from '../../../src/domain/app/app.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import type { Claim } from '../../../src/store/store.ts'
import { listEmails, operator } from '../../support/operator.ts'
import { freePort } from '../../support/ports.ts'
import { newTestRelay, relayTo, smtpTo, startTestService, type TestService, validBody } from '../../support/service.ts'
import { drop, type Script, silence, startScriptedServer, startSmtpServer, testMessage } from '../../support/smtp.ts'
import { atEnd, type Scope } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const cert = readFileSync(new URL('../../support/tls/localhost.cert.pem', import.meta.url), 'utf8')
const key = readFileSync(new URL('../../support/tls/localhost.key.pem', import.meta.url), 'utf8')

async function post(service: TestService, change: Record<string, unknown> = {}): Promise<EmailId> {
  const answer = await service.post(validBody(change, service.store.now()))
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  return answer.headers.get('email-id') as EmailId
}

const reaches = (service: TestService, id: EmailId, state: string) =>
  eventually(async () => {
    const record = await service.store.findEmail(id)
    return record?.state === state ? record : null
  })

async function withScript(t: Scope, script: Script | ((connection: number) => Script)) {
  const server = await startScriptedServer(t, script)
  const service = await startTestService(t, { relays: [relayTo(server.port)] })
  return { server, service, id: await post(service) }
}

test('a delivered email: one recipient in the envelope, every part as it was accepted', async (t) => {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(server.port)] })
  const id = await post(service, { to: 'Ada@Example.com' })
  const received = await server.first()
  assert.equal(received.from, 'auth@acme.test')
  assert.deepEqual(received.to, ['Ada@example.com'])
  const message = await PostalMime.parse(received.raw)
  assert.equal(message.messageId, `<${service.store.makeReference(id)}@acme.test>`)
  assert.ok(message.text?.includes('https://app.acme.test/auth?token=abc'))
  assert.ok(message.html?.includes('https://app.acme.test/auth?token=abc'))
  const record = await reaches(service, id, 'delivered')
  assert.equal(record.attempts, 1)
  assert.match(record.trail[0]?.reply?.text ?? '', /^250/)
})

test('mail that was deferred before the clock was set back is sent, and not an hour later', async (t) => {
  const { server, service, id } = await withScript(t, (connection) =>
    connection === 0 ? { rcpt: '451 4.7.1 Greylisted' } : {},
  )
  await reaches(service, id, 'deferred')
  service.advance(-3_600_000)
  await reaches(service, id, 'delivered')
  assert.equal(server.messages.length, 1)
})

test('row 24: greylisting defers, and the retry delivers with the same Message-ID', async (t) => {
  const { server, service, id } = await withScript(t, (connection) =>
    connection === 0 ? { rcpt: '450 4.2.0 try later' } : {},
  )
  const record = await reaches(service, id, 'deferred')
  assert.equal(record.trail[0]?.reply?.text, '450 4.2.0 try later')
  assert.equal(record.attempts, 1)
  service.advance(7000)
  await reaches(service, id, 'delivered')
  assert.match(server.messages[0] ?? '', new RegExp(`Message-ID: <${id}\\.\\w{10}@acme\\.test>`))
})

for (const [where, script] of [
  ['RCPT', { rcpt: '550 5.1.1 <ada@example.com> unknown' }],
  ['DATA', { data: '554 5.2.1 disabled' }],
  ['the final dot', { dot: '550 5.7.1 ada@example.com refused' }],
] as [string, Script][]) {
  test(`row 25: a recipient’s refusal at ${where} fails the email, keeps the reply, names no address`, async (t) => {
    const { service, id } = await withScript(t, script)
    const record = await reaches(service, id, 'failed')
    assert.equal(record.reason, 'refused_by_relay')
    assert.match(record.trail.at(-1)?.reply?.text ?? '', /^55\d 5\./)
    assert.doesNotMatch(JSON.stringify(record), /ada@example/)
  })
}

test('row 22: a relay that is down holds the queue without burning attempts, and resumes by itself', async (t) => {
  const closed = createServer()
  const port = await new Promise<number>((resolve) =>
    closed.listen(0, '127.0.0.1', () => resolve((closed.address() as { port: number }).port)),
  )
  await new Promise((resolve) => closed.close(resolve))
  const service = await startTestService(t, { relays: [relayTo(port)] })
  const ids = await Promise.all(Array.from({ length: 8 }, (_, i) => post(service, { to: `r${i}@example.com` })))
  await eventually(() => service.log.some((line) => line.includes('the relay is unavailable')))
  const tried = await eventually(async () =>
    (await Promise.all(ids.map((id) => service.store.findEmail(id)))).find(
      (record) =>
        record?.state === 'deferred' && record.trail.some(({ reply }) => reply?.text.includes('ECONNREFUSED')),
    ),
  )
  assert.equal(tried.attempts, 0)
  const { SMTPServer } = await import('smtp-server')
  const server = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'] })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  atEnd(t, () => server.close())
  for (const id of ids) assert.equal((await reaches(service, id, 'delivered')).attempts, 1)
})

test('rows 22 and 25: refused credentials are the operator’s fault: held, not failed', async (t) => {
  const server = await startScriptedServer(t, {
    ehlo: '250-scripted\r\n250 AUTH PLAIN',
    auth: '535 5.7.8 bad credentials',
  })
  const credentials = { user: 'u', pass: 'canary-password' }
  const service = await startTestService(t, { relays: [relayTo(server.port, { credentials })] })
  const id = await post(service)
  const record = await reaches(service, id, 'deferred')
  assert.equal(record.attempts, 0)
  assert.match(record.trail[0]?.reply?.text ?? '', /535 5\.7\.8/)
  const log = await eventually(() => service.log.find((line) => line.includes('the relay is unavailable')))
  assert.match(log, /535/)
  assert.doesNotMatch(service.log.join(), /canary-password/)
})

test('a relay that repeats the AUTH command does not get the password into a record', async (t) => {
  const [user, pass] = ['postern', 'correct horse battery']
  const sent = Buffer.from(`\u0000${user}\u0000${pass}`).toString('base64')
  const server = await startScriptedServer(t, {
    ehlo: '250-scripted\r\n250 AUTH PLAIN',
    auth: `500 5.5.1 Command unrecognized: "AUTH PLAIN ${sent}" ${pass}`,
  })
  const relay = newTestRelay(relayTo(server.port, { credentials: { user, pass } }))
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
  const record = JSON.stringify(await relay.submit(testMessage(), clearance).finally(() => relay.close()))
  assert.match(record, /<secret>/)
  assert.ok(!record.includes(pass) && !record.includes(sent.slice(0, 12)), record)
})

test('STARTTLS with a verified certificate and AUTH', async (t) => {
  const server = await startSmtpServer(t, {
    disabledCommands: [],
    key,
    cert,
    authOptional: false,
    onAuth: (auth, _session, callback) =>
      callback(auth.password === 'right' ? null : new Error('no'), { user: auth.username ?? '' }),
  })
  const relay = relayTo(server.port, {
    host: 'localhost',
    tls: 'starttls',
    ca: cert,
    credentials: { user: 'me', pass: 'right' },
  })
  const service = await startTestService(t, { relays: [relay] })
  await post(service)
  const received = await server.first()
  assert.equal(received.secure, true)
  assert.equal(received.user, 'me')
})

test('row 26: a certificate that does not verify defers, nothing is sent', async (t) => {
  const server = await startSmtpServer(t, { disabledCommands: [], key, cert })
  const service = await startTestService(t, {
    relays: [relayTo(server.port, { host: 'localhost', tls: 'starttls' })],
  })
  const id = await post(service)
  const record = await reaches(service, id, 'deferred')
  assert.match(record.trail[0]?.reply?.text ?? '', /self-signed|certificate/)
  assert.ok(service.log.some((line) => line.includes('the relay is unavailable')))
  assert.equal(server.received.length, 0)
})

test('row 26: a stripped STARTTLS never falls back to plain text', async (t) => {
  const server = await startScriptedServer(t, {})
  const service = await startTestService(t, { relays: [relayTo(server.port, { tls: 'starttls' })] })
  const id = await post(service)
  await reaches(service, id, 'deferred')
  assert.deepEqual(
    server.transcript.filter((line) => /^(MAIL|RCPT|DATA)/.test(line)),
    [],
  )
  assert.deepEqual(server.messages, [])
})

test('row 26: replies slipped in before TLS begins are never taken for replies within it', async (t) => {
  const within: string[] = []
  const closed = Promise.withResolvers<void>()
  const server = await startScriptedServer(t, {
    ehlo: '250-relay\r\n250 STARTTLS',
    starttls: (socket) => {
      socket.removeAllListeners('data')
      socket.write('220 go\r\n250 relay\r\n')
      const secured = new TLSSocket(socket, { isServer: true, key, cert })
      secured.on('error', () => {})
      secured.on('data', (chunk) => within.push(String(chunk)))
      secured.on('close', () => closed.resolve())
      // A client that sends more took the earlier reply for its own EHLO.
      secured.once('data', () => secured.end('421 4.3.2 no\r\n'))
    },
  })
  const relay = relayTo(server.port, { host: 'localhost', tls: 'starttls', ca: cert })
  const service = await startTestService(t, { relays: [relay] })
  await reaches(service, await post(service), 'deferred')
  await closed.promise
  assert.match(within.join(''), /^EHLO \S+\r\n$/)
})

test('row 27: lost before the final dot: deferred; lost after it: deferred and marked ambiguous', async (t) => {
  const before = await withScript(t, { rcpt: drop })
  const after = await withScript(t, { dot: drop })
  const early = await reaches(before.service, before.id, 'deferred')
  const late = await reaches(after.service, after.id, 'deferred')
  assert.equal(early.trail[0]?.ambiguous, undefined)
  assert.equal(late.trail[0]?.ambiguous, true)
  assert.equal(late.attempts, 1)
  after.service.advance(7000)
  await eventually(() => after.server.messages.length === 2)
  const ids = after.server.messages.map((message) => /Message-ID: (\S+)/.exec(message)?.[1])
  assert.equal(ids[0], ids[1])
})

test('row 33: expired in the queue, or while the relay dawdles before DATA: not sent', async (t) => {
  const held = await startTestService(t, { relays: [], roles: new Set(['api'] as const) })
  const inQueue = await post(held, { expiresAt: new Date(held.store.now() + 60_000).toISOString() })
  held.advance(60_000)
  assert.deepEqual((await held.store.claimDue({ max: 9, perApp: 9, leases: [] })).claims, [])
  assert.equal((await held.store.findEmail(inQueue))?.state, 'expired')

  const server = await startScriptedServer(t, { rcpt: silence })
  const service = await startTestService(t, { relays: [relayTo(server.port)] })
  const id = await post(service, { expiresAt: new Date(service.store.now() + 1500).toISOString() })
  await reaches(service, id, 'expired')
  assert.deepEqual(server.messages, [])
})

test('several relays: the next one is tried when the first is unavailable, not when it refuses', async (t) => {
  const down = await startScriptedServer(t, { greeting: '554 no service' })
  const up = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(down.port), relayTo(up.port)] })
  const record = await reaches(service, await post(service), 'delivered')
  assert.equal(record.trail[0]?.relay, `127.0.0.1:${up.port}`)
  const refusing = await startScriptedServer(t, { rcpt: '550 5.1.1 unknown' })
  const strict = await startTestService(t, { relays: [relayTo(refusing.port), relayTo(up.port)] })
  await reaches(strict, await post(strict), 'failed')
  assert.equal(up.received.length, 1)
})

test('a session is used again, and one that the server ended meanwhile costs no attempt', async (t) => {
  const server = await startScriptedServer(t, (connection) =>
    connection === 0 ? { dot: (socket) => socket.end('250 2.0.0 taken\r\n') } : {},
  )
  const service = await startTestService(t, { relays: [{ ...relayTo(server.port), connectionsMax: 1 }] })
  for (let i = 0; i < 4; i++) assert.equal((await reaches(service, await post(service), 'delivered')).attempts, 1)
  assert.equal(server.connections(), 2)
})

test('a relay’s pace is kept, and mail whose turn comes after its link has expired is not sent', async (t) => {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [{ ...relayTo(server.port), rate: 1 }] })
  const expiresAt = new Date(service.store.now() + 1500).toISOString()
  const ids = await Promise.all(
    Array.from({ length: 5 }, (_, i) => post(service, { to: `r${i}@example.com`, expiresAt })),
  )
  await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
  const states = await Promise.all(ids.map(async (id) => (await service.store.findEmail(id))?.state))
  const delivered = states.filter((state) => state === 'delivered').length
  assert.ok(delivered <= 2, 'one a second: the third has its turn after 2 s')
  assert.equal(states.filter((state) => state === 'expired').length, 5 - delivered)
  assert.equal(server.received.length, delivered)
})

test('row 34: mail of a disabled app is held while it is disabled, and sent afterwards', async (t) => {
  const gate = await startScriptedServer(t, (connection) => (connection === 0 ? { rcpt: '451 4.3.0 later' } : {}))
  const service = await startTestService(t, { relays: [relayTo(gate.port)] })
  const id = await post(service)
  await reaches(service, id, 'deferred')
  await service.store.updateApp(service.app.id, { status: 'disabled' }, operator)
  service.advance(10_000)
  await eventually(async () => (await service.store.findEmail(id))?.state === 'queued')
  assert.equal(gate.messages.length, 0)
  await service.store.updateApp(service.app.id, { status: 'active' }, operator)
  await reaches(service, id, 'delivered')
})

test('row 32: stopping finishes the emails being sent, gives the rest back, and loses nothing', async (t) => {
  const waiting: (() => void)[] = []
  const server = await startScriptedServer(t, {
    dot: (socket) => void waiting.push(() => socket.write('250 2.0.0 taken\r\n')),
  })
  const service = await startTestService(t, { relays: [{ ...relayTo(server.port), connectionsMax: 2 }] })
  await Promise.all(Array.from({ length: 10 }, (_, i) => post(service, { to: `r${i}@example.com` })))
  await eventually(() => waiting.length > 0)
  const stopped = service.stop()
  const pump = setInterval(() => {
    for (const answer of waiting.splice(0)) answer()
  }, 5)
  await stopped
  clearInterval(pump)
  const again = await startAgain(t, service)
  const records = await listEmails(again.store, { limit: 50 })
  const states = records.map((record) => record.state)
  assert.equal(states.length, 10)
  assert.equal(states.filter((state) => state === 'delivered').length, server.messages.length)
  assert.ok(
    states.every((state) => state === 'delivered' || state === 'queued'),
    states.join(),
  )
  assert.ok(records.every((record) => record.state === 'delivered' || record.attempts === 0))
})

async function startAgain(t: Scope, service: TestService) {
  const { openStore } = await import('../../../src/compose/store.ts')
  const store = await openStore(service.config, { onFatal: assert.fail })
  atEnd(t, () => store.close())
  return { store }
}

test('row 30: a lease that lapsed before the 354: nothing is handed over, and the attempt is given back', async (t) => {
  const server = await startScriptedServer(t, {})
  const session = await SmtpSession.open(smtpTo(server.port), AbortSignal.timeout(10_000))
  assert.ok(session instanceof SmtpSession)
  atEnd(t, () => session.close())
  const deadlineMs = performance.now() + 60_000
  const submission = await session.submit(testMessage(), { deadlineMs, isLeaseValid: () => false })
  assert.equal(submission.kind, 'stopped')
  assert.equal(server.transcript.at(-1), 'DATA')
  assert.deepEqual(server.messages, [])
})

test('an email that could not be tried for 48 hours fails, and says so', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  const id = await post(service, { expiresAt: new Date(service.store.now() + 72 * 3_600_000).toISOString() })
  await reaches(service, id, 'deferred')
  service.advance(48 * 3_600_000)
  const record = await reaches(service, id, 'failed')
  assert.deepEqual([record.reason, record.attempts], ['retries_exhausted', 1])
  assert.match(record.trail.at(-1)?.reply?.text ?? '', /48 hours have passed/)
})

test('after the machine was suspended, nothing is handed over by a lease or for a link that may have ended meanwhile', async (t) => {
  const wallMs = Date.now()
  // The link lives for 90 s and the lease for 60 s; the monotonic clock stands still while the machine
  // sleeps.
  for (const [sleptMs, leasedMs] of [
    [61_000, 0],
    [91_000, 40_000],
  ] as const) {
    const server = await startScriptedServer(t, {
      data: (socket) => {
        t.mock.timers.enable({ apis: ['Date'], now: wallMs + sleptMs })
        socket.write('354 go on\r\n')
      },
    })
    const session = await SmtpSession.open(smtpTo(server.port), AbortSignal.timeout(10_000))
    assert.ok(session instanceof SmtpSession)
    atEnd(t, () => session.close())
    const monotonicMs = performance.now()
    const attempt = {
      claim: { lifeLeftMs: 90_000 } as Claim,
      app: {} as App,
      claimedAt: { monotonicMs, wallMs },
      leasedAt: { monotonicMs, wallMs: wallMs + leasedMs },
      areLeasesValid: () => true,
    }
    assert.equal(isLeaseValid(attempt), true)
    const clearance = { deadlineMs: monotonicMs + 90_000, isLeaseValid: () => isLeaseValid(attempt) }
    const submission = await session.submit(testMessage(), clearance)
    t.mock.timers.reset()
    assert.equal(submission.kind, 'stopped')
    assert.deepEqual(server.messages, [])
    const renewed = { monotonicMs: monotonicMs + 40_000, wallMs: wallMs + 40_000 }
    const later = { monotonicMs: monotonicMs + 65_000, wallMs: wallMs + 65_000 }
    assert.equal(isLeaseValid(attempt, later), false)
    assert.equal(isLeaseValid({ ...attempt, leasedAt: renewed }, later), true, 'after a renewal')
    assert.equal(isLeaseValid({ ...attempt, areLeasesValid: () => false }), false, 'the worker counts as dead')
  }
})
