/** Observing from outside: metrics, log lines, request ids. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import pg from 'pg'
import { openStore } from '../../../src/compose/store.ts'
import { minuteMs } from '../../../src/domain/duration.ts'
import { type AppId, type EmailId, newId } from '../../../src/domain/id.ts'
import { defaultLimits } from '../../../src/domain/limit.ts'
import type { ActivityEvent } from '../../../src/domain/operator/activity.ts'
import type { PosternEvent } from '../../../src/observe/events.ts'
import { newListener } from '../../../src/web/http/listener.ts'
import { deferred } from '../../conformance/subject.ts'
import { databaseAt, engine, testDatabase } from '../../support/database.ts'
import { lacking, toolPath } from '../../support/installed.ts'
import { ask, assertDescribed, newManagementToken } from '../../support/management.ts'
import { operator } from '../../support/operator.ts'
import { freePort } from '../../support/ports.ts'
import { postgresUrl, schemaOf } from '../../support/postgres.ts'
import {
  newRing,
  newSender,
  relayTo,
  startTestService,
  type TestService,
  testSettings,
  validBody,
} from '../../support/service.ts'
import { silence, startScriptedServer, startSmtpServer } from '../../support/smtp.ts'
import { atEnd } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const scrape = async (service: TestService): Promise<string> => (await fetch(`${service.urls.ops}/metrics`)).text()
const valueIn = (metrics: string, name: string): number =>
  Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (.+)$`, 'm').exec(metrics)?.[1])
const lines = (service: TestService) => service.log.map((line) => JSON.parse(line) as Record<string, unknown>)

test('the first scrape shows the age of the oldest email, and the first one after draining shows 0', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const answer = await service.post(validBody())
  service.advance(300_000)
  const age = valueIn(await scrape(service), 'postern_queue_oldest_age_seconds')
  assert.ok(age >= 300 && age < 330, String(age))
  await service.store.cancelEmail(answer.headers.get('email-id') as EmailId, operator)
  assert.equal(valueIn(await scrape(service), 'postern_queue_oldest_age_seconds'), 0)
  assert.equal(valueIn(await scrape(service), 'postern_queue_depth'), 0)
})

test('the series of the alerts begin at 0, so that an increase shows the first event', async (t) => {
  const metrics = await scrape(await startTestService(t))
  for (const series of [
    'postern_requests_total{source="api",status="503",code="queue_unavailable"}',
    'postern_emails_finished_total{state="expired",reason=""}',
    'postern_emails_finished_total{state="failed",reason="refused_by_relay"}',
  ])
    assert.equal(valueIn(metrics, series), 0, series)
})

test('a relay is available from the start, and its fall shows', async (t) => {
  const port = await freePort()
  const service = await startTestService(t, { relays: [relayTo(port)] })
  const name = `postern_relay_available{relay="127.0.0.1:${port}"}`
  assert.equal(valueIn(await scrape(service), name), 1)
  for (let n = 0; n < 4; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  await eventually(async () => valueIn(await scrape(service), name) === 0)
})

test('emails that expire while the relay is down are counted and logged, each once', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  const expiresAt = new Date(service.store.now() + 60_000).toISOString()
  for (let n = 0; n < 5; n++) await service.post(validBody({ to: `r${n}@example.com`, expiresAt }))
  service.advance(60_000)
  await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
  const expired = 'postern_emails_finished_total{state="expired",reason=""}'
  await eventually(async () => valueIn(await scrape(service), expired) === 5)
  const logged = lines(service).filter(({ state, outcome }) => state === 'expired' || outcome === 'expired')
  assert.equal(
    logged.reduce((sum, { count = 1 }) => sum + Number(count), 0),
    5,
  )
})

test('a relay that is down is one line, not one for each email', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  for (let n = 0; n < 5; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  await eventually(() => service.log.some((line) => line.includes('the relay is unavailable')))
  const loud = lines(service).filter(({ level, msg }) => Number(level) >= 30 && /tried|unavailable/.test(String(msg)))
  assert.equal(loud.length, 1, JSON.stringify(loud))
})

test('the request id of an error finds its log line, which names app, key and reason', async (t) => {
  const service = await startTestService(t, {})
  const url = 'https://evil.test/auth?token=canary-token'
  const { status, body } = await service.post(validBody({ url, to: 'canary@example.com' }))
  assert.equal(status, 403)
  const line = lines(service).find(({ requestId }) => requestId === body.error.requestId)
  assert.deepEqual(
    [line?.status, line?.code, line?.app, line?.key],
    [403, 'url_not_allowed', service.app.id, service.keyId],
  )
  const invalid = await service.post(validBody({ to: 'canary', expiresAt: 'x' }))
  const second = lines(service).find(({ requestId }) => requestId === invalid.body.error.requestId)
  assert.deepEqual(second?.issues, ['to not_an_address', 'expiresAt not_a_timestamp'])
  assert.doesNotMatch(service.log.join('\n'), /canary/)
})

test('accepted and delivered emails leave a line each', async (t) => {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const id = (await service.post(validBody())).headers.get('email-id')
  await eventually(() => lines(service).some(({ email, outcome }) => email === id && outcome === 'delivered'))
  const accepted = lines(service).find(({ email, status }) => email === id && status === 202)
  assert.match(String(accepted?.requestId), /^req_/)
})

test('a bug is answered 500, with a request id that its event carries', async () => {
  const events: PosternEvent[] = []
  const app = newListener({ emit: (event) => void events.push(event) })
  app.get('/', () => {
    throw new Error('broken')
  })
  const answer = await app.inject({ url: '/', headers: { host: 'x' } })
  assert.equal(answer.statusCode, 500)
  const { requestId } = answer.json().error
  assert.deepEqual(
    events.map((event) => event.kind === 'bug' && event.requestId),
    [requestId],
  )
})

test('promtool finds nothing to complain of', {
  skip: lacking('promtool'),
}, async (t) => {
  const service = await startTestService(t, {})
  await service.post(validBody())
  const input = await eventually(async () => {
    const text = await scrape(service)
    return text.includes('outcome="delivered"') ? text : null
  })
  assert.equal(execFileSync(toolPath('promtool'), ['check', 'metrics'], { input, encoding: 'utf8' }), '')
})

test('one scrape tells of requests, attempts, ends, connections, claims, groups and the queue', async (t) => {
  const refusing = await startScriptedServer(t, { rcpt: '550 5.1.1 unknown' })
  const service = await startTestService(t, { relays: [relayTo(refusing.port)] })
  const relay = `127.0.0.1:${refusing.port}`
  await service.post(validBody())
  await service.post({})
  const metrics = await eventually(async () => {
    const text = await scrape(service)
    const failed = valueIn(text, 'postern_emails_finished_total{state="failed",reason="refused_by_relay"}')
    // The lag is that since the last scrape, in samples of 10 ms: a scrape may come before one.
    return failed === 1 && valueIn(text, 'nodejs_eventloop_lag_mean_seconds') > 0 ? text : null
  })
  const expected: Record<string, number> = {
    'postern_requests_total{source="api",status="202",code="accepted"}': 1,
    'postern_requests_total{source="api",status="400",code="invalid_body"}': 1,
    'postern_requests_total{source="api",status="429",code="key_rate_limited"}': 0,
    'postern_request_duration_seconds_count{status="202"}': 1,
    [`postern_attempts_total{outcome="failed",relay="${relay}",cause="no_mailbox"}`]: 1,
    [`postern_attempts_total{outcome="deferred",relay="${relay}",cause="policy"}`]: 0,
    [`postern_attempt_duration_seconds_count{relay="${relay}"}`]: 1,
    [`postern_relay_connections{relay="${relay}",state="max"}`]: 5,
    [`postern_relay_connections{relay="${relay}",state="busy"}`]: 0,
    [`postern_relay_connections{relay="${relay}",state="connecting"}`]: 0,
    'postern_queue_emails{state="queued"}': 0,
    postern_queue_lateness_seconds: 0,
    postern_queue_max: 1_000_000,
    'postern_store_failures_total{work="request"}': 0,
  }
  for (const [series, value] of Object.entries(expected)) assert.equal(valueIn(metrics, series), value, series)
  for (const series of [
    'postern_request_duration_seconds_sum{status="202"}',
    `postern_attempt_duration_seconds_sum{relay="${relay}"}`,
    'postern_claim_seconds_sum',
    'postern_claimed_emails_sum',
    'postern_store_group_seconds_sum',
    'postern_store_group_calls_sum',
    'process_resident_memory_bytes',
    'process_cpu_seconds_total',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_eventloop_lag_mean_seconds',
    ...(engine === 'sqlite' ? ['postern_store_disk_free_bytes'] : []),
  ])
    assert.ok(valueIn(metrics, series) > 0, series)
  const attempts = valueIn(metrics, `postern_attempt_duration_seconds_sum{relay="${relay}"}`)
  assert.ok(attempts < performance.now() / 1000, 'an attempt takes less than the process has run')
  const answered = valueIn(metrics, 'postern_request_duration_seconds_sum{status="202"}')
  assert.ok(answered < performance.now() / 1000, 'and so does a request')
  assert.match(metrics, /^postern_build_info\{version="test",node_version="[\d.]+",engine="\w+"\} 1$/m)
})

test('connections that a relay does not greet are seen while they are being opened', async (t) => {
  const mute = await startScriptedServer(t, { greeting: silence })
  const service = await startTestService(t, { relays: [relayTo(mute.port)] })
  const series = `postern_relay_connections{relay="127.0.0.1:${mute.port}",state="connecting"}`
  await service.post(validBody())
  await eventually(async () => valueIn(await scrape(service), series) === 1)
  mute.close() // a stop of the service would wait for the greeting
})

test('mail that no process sends is late by the clock, and a deferred email is not', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const lateness = async () => valueIn(await scrape(service), 'postern_queue_lateness_seconds')
  await service.post(validBody({ expiresAt: new Date(Date.now() + 3_600_000).toISOString() }))
  service.advance(40_000)
  const seconds = await lateness()
  assert.ok(seconds >= 40 && seconds < 70, String(seconds))
  const { claims } = await service.store.claimDue({ max: 9, perApp: 9, leases: [] })
  for (const claim of claims) await service.store.recordOutcome(claim, deferred(600_000))
  service.advance(100_000)
  assert.equal(await lateness(), 0)
})

test('a command over the API that cancels an email is counted and logged by its process', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api', 'console'] as const) })
  const id = (await service.post(validBody())).headers.get('email-id')
  const token = await newManagementToken(service)
  await ask(service, `POST /v1/emails/${id}/cancel`, { token })
  const series = 'postern_emails_finished_total{state="cancelled",reason="by_operator"}'
  assert.equal(valueIn(await scrape(service), series), 1)
  assert.ok(lines(service).some((line) => line.email === id && line.state === 'cancelled'))
})

test('refused requests are found by their recipient, whether the request was wrong or over a limit', async (t) => {
  const settings = { limits: { ...testSettings.limits, recipientPerHour: 1 } }
  const service = await startTestService(t, { roles: new Set(['api', 'console'] as const), settings })
  const token = await newManagementToken(service)
  const to = 'ada@example.com'
  await service.post(validBody({ to }))
  await service.post(validBody({ to }))
  await service.post(validBody({ to, expiresAt: 'never' }))
  await service.post(validBody({ to, url: 'https://evil.test/?token=t' }))
  await service.post(validBody({ to: 'bob@example.com', url: 'https://evil.test/?token=t' }))
  await service.post(validBody({ to: 'no address' }))
  const found = await ask(service, 'POST /v1/emails/find', { token, body: { to: 'Ada@EXAMPLE.com' } })
  const { recipient } = found.body
  const list = (more = '') => ask(service, `GET /v1/refusals?recipient=${recipient}${more}`, { token })
  // They are written once a second, perhaps not all at once.
  await eventually(async () => (await ask(service, 'GET /v1/refusals', { token })).body.items.length === 5)
  const shown = await list()
  assertDescribed('refusal.list', shown)
  assert.deepEqual(
    shown.body.items.map(({ code }: { code: string }) => code),
    ['url_not_allowed', 'invalid_body', 'recipient_rate_limited'],
  )
  assert.ok(!shown.text.includes(recipient.slice(3)), 'the hash stays inside')
  assert.equal((await list('&code=invalid_body')).body.items.length, 1)
  const first = await list('&limit=2')
  assert.equal((await list(`&limit=2&cursor=${first.body.next}`)).body.items.length, 1)
  const other = await newManagementToken(service, 'reader', [newId('app', 0)])
  assert.deepEqual((await ask(service, 'GET /v1/refusals', { token: other })).body.items, [])
})

test('the API and the status show refusals, counts, processes and relays; secrets and paths are not among them', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  const token = await newManagementToken(service)
  const url = 'https://evil.test:8443/canary-path?token=canary-token'
  const refused = await service.post(validBody({ url, to: 'canary@example.com' }))
  for (let n = 0; n < 4; n++) await service.post(validBody({ to: `canary${n}@example.com` }))
  const { requestId } = refused.body.error
  const found = await eventually(async () => {
    const answer = await ask(service, `GET /v1/refusals/${requestId}`, { token })
    return answer.status === 200 ? answer : null
  })
  assertDescribed('refusal.show', found)
  const { status, code, origin, key } = found.body
  assert.deepEqual([status, code, origin, key], [403, 'url_not_allowed', 'https://evil.test:8443', service.keyId])
  const shown = await eventually(async () => {
    const answer = await ask(service, 'GET /v1/status', { token })
    const isDown = answer.status === 200 && answer.body.nodes[0]?.relays[0]?.available === false
    return isDown && answer.body.lastHour.accepted === 4 ? answer : null
  })
  const { attention, nodes, lastHour } = shown.body
  assert.deepEqual([lastHour.accepted, lastHour.refused], [4, { url_not_allowed: 1 }])
  assert.match(nodes[0].relays[0].reason, /ECONNREFUSED/)
  assert.match(
    attention[0].message,
    /^Nothing has been delivered since .*4 emails are waiting; the first link expires in 1[45] min\. Sending resumes by itself/,
  )
  const ofApp = await newManagementToken(service, 'reader', [service.app.id])
  const theirs = await ask(service, 'GET /v1/status', { token: ofApp })
  assert.deepEqual([theirs.body.attention[0].kind, theirs.body.nodes], ['no_relay', []])
  const stopped = await ask(service, 'GET /v1/queue', { token: ofApp })
  assertDescribed('queue.show', stopped)
  // Its age in seconds grows between the two answers.
  const withoutAge = (text: string) => text.replace(/ \(\d+ s\)/, '')
  assert.deepEqual(
    stopped.body.stops.map((stop: { message: string }) => ({ ...stop, message: withoutAge(stop.message) })),
    theirs.body.attention.map((one: { message: string }) => ({ ...one, message: withoutAge(one.message) })),
  )
  for (const answer of [theirs, stopped])
    assert.doesNotMatch(answer.text, /127\.0\.0\.1|ECONNREFUSED/, 'people of an app learn no name of a relay')
  const another = await newManagementToken(service) // the first one may have reached its rate
  const activity = await ask(service, `GET /v1/activity?app=acme`, { token: another })
  assertDescribed('activity.show', activity)
  assert.deepEqual([activity.body.step, activity.body.total.accepted], ['hour', 4])
  const since = async (from: string) => {
    const path = `GET /v1/activity?app=acme&step=hour&from=${from}&to=2026-11-02T00:00:00Z`
    return (await ask(service, path, { token: another })).status
  }
  const begins = ['2026-09-03T01:00:00Z', '2026-09-03T00:59:59Z', '2026-11-02T00:59:59Z', '2026-11-02T01:00:00Z']
  assert.deepEqual(await Promise.all(begins.map(since)), [200, 400, 200, 400], '1,440 hours at most')
  for (const answer of [found, shown, activity]) assert.doesNotMatch(answer.text, /canary/)
  assert.doesNotMatch(service.log.join('\n'), /canary/)
})

test('the status of the whole service says that most requests of the last minutes were refused', async (t) => {
  const service = await startTestService(t, {
    settings: { limits: { ...defaultLimits, keyPerMinute: 1000 } },
  })
  for (let n = 0; n < 25; n++) await service.post({ to: `a${n}@example.com` })
  await service.post(validBody())
  const statusFor = async (apps: readonly AppId[] | null) =>
    (await ask(service, 'GET /v1/status', { token: await newManagementToken(service, 'reader', apps) })).body
  const kindsOf = ({ attention }: { attention: { kind: string }[] }) => attention.map(({ kind }) => kind)
  await eventually(async () => kindsOf(await statusFor(null)).includes('requests_refused'))
  const other = await newSender(service, 'other')
  assert.ok(kindsOf(await statusFor([service.app.id])).includes('requests_refused'), 'its team sees it')
  assert.ok(!kindsOf(await statusFor([other.app.id])).includes('requests_refused'), 'others do not')
  service.advance(11 * 60_000)
  assert.ok(!kindsOf(await statusFor(null)).includes('requests_refused'), 'ten minutes later it is over')
})

test('links that expired while a relay was down are left out of the status as soon as it is back', async (t) => {
  const minute = 30_000_000
  const roles = new Set(['console'] as const)
  const service = await startTestService(t, { roles, nowMs: minute * minuteMs + 10_000 })
  const { app, store } = service
  const other = await newSender(service, 'other')
  const expired = (id: AppId, at: number, count: number) =>
    [null, id].map((of) => ({ app: of, span: 1, minute: at, event: 'expired', count }) as const)
  await store.addActivity([...expired(app.id, minute - 6, 3), ...expired(other.app.id, minute - 2, 2)])
  const statusOf = async (until: number) => {
    const lastOutage = { from: (minute - 9) * minuteMs, until: until * minuteMs, reason: 'ECONNREFUSED' }
    const connections = { connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 }
    const state = { available: true, tried: true, since: 0, reason: '', connections, lastOutage }
    const relay = { name: 'r1', certificateExpiresAt: null, ...state }
    const node = { id: newId('node', 0), machine: 'mail-1', version: '1', roles: ['worker'], startedAt: 0 }
    await store.noteNode({ ...node, relays: [relay], faults: [] })
    const { body } = await ask(service, 'GET /v1/status', { token: await newManagementToken(service) })
    const found: { kind: string; apps: string[] }[] = body.attention
    return found.filter(({ kind }) => kind === 'links_expired').map(({ apps }) => apps.toSorted())
  }
  assert.deepEqual(await statusOf(minute - 8), [['acme', 'other']])
  assert.deepEqual(await statusOf(minute - 4), [['other']])
})

test('what was wrong before is listed with its apps and replies, and not while it goes on', async (t) => {
  const minute = 30_000_000
  const roles = new Set(['console'] as const)
  const service = await startTestService(t, { roles, nowMs: minute * minuteMs + 10_000 })
  const { app, store } = service
  const [other, third] = [await newSender(service, 'other'), await newSender(service, 'third')]
  const count = (id: AppId, at: number, event: ActivityEvent, sum: number) =>
    [null, id].map((of) => ({ app: of, span: 1, minute: at, event, count: sum }) as const)
  await store.addActivity([
    ...count(app.id, minute - 40, 'failed:refused_by_relay', 30),
    ...count(app.id, minute - 39, 'delivered', 10),
    ...count(app.id, minute - 1, 'failed:refused_by_relay', 1),
    ...count(other.app.id, minute - 30, 'failed:refused_by_relay', 20),
    ...count(other.app.id, minute - 3, 'failed:refused_by_relay', 20),
    ...count(third.app.id, minute - 20, 'expired', 2),
    ...count(third.app.id, minute - 2, 'expired', 1),
  ])
  const earlierFor = async (apps: readonly AppId[] | null) => {
    const token = await newManagementToken(service, 'reader', apps)
    const { earlier } = (await ask(service, 'GET /v1/status', { token })).body
    return earlier.map(({ apps: slugs, message, until }: { apps: string[]; message: string; until: string }) => [
      slugs,
      message,
      minute - Date.parse(until) / minuteMs,
    ])
  }
  const expired = [['third'], '2 links from third expired before the email could be sent.', 19]
  const failed = [['acme'], '30 emails from acme failed.', 39]
  assert.deepEqual(await earlierFor(null), [expired, failed], 'the mail of other goes on failing')
  assert.deepEqual(await earlierFor([third.app.id]), [expired])
  assert.deepEqual(await earlierFor([other.app.id]), [])
})

test('a process that stops is no longer listed, and what it counted last is written', async (t) => {
  const relay = await startSmtpServer(t)
  const database = await testDatabase(t)
  const ring = newRing()
  const service = await startTestService(t, { database, ring, relays: [relayTo(relay.port)] })
  await service.post(validBody())
  await eventually(() => relay.received.length === 1)
  assert.equal((await eventually(async () => (await service.store.listNodes())[0])).version, 'test')
  await service.stop()
  const other = await openStore({ ...service.config, database, ring }, { onFatal: assert.fail })
  atEnd(t, () => other.close())
  const counts = await other.readActivity({ apps: null, from: 0, to: 2 ** 31, step: 1 })
  assert.equal(counts.find(({ event }) => event === 'delivered')?.count, 1)
  assert.deepEqual(await other.listNodes(), [])
})

test('a store that does not answer in time costs a scrape its gauges, and no counter', {
  skip: engine === 'sqlite' && 'skipped: PostgreSQL alone can be held by another session',
}, async (t) => {
  const url = await postgresUrl(t)
  const service = await startTestService(t, { database: databaseAt(url), roles: new Set(['api'] as const) })
  await service.post(validBody())
  const holder = new pg.Client(url)
  await holder.connect()
  atEnd(t, () => holder.end())
  await holder.query(`begin; lock table "${schemaOf(url)}".app in access exclusive mode`)
  const metrics = await scrape(service)
  assert.ok(Number.isNaN(valueIn(metrics, 'postern_queue_lateness_seconds')))
  assert.match(metrics, /^postern_queue_depth Nan$/im)
  assert.equal(valueIn(metrics, 'postern_requests_total{source="api",status="202",code="accepted"}'), 1)
  assert.equal(valueIn(metrics, 'postern_queue_max'), 1_000_000)
  await holder.query('rollback')
  await eventually(async () => valueIn(await scrape(service), 'postern_queue_depth') === 1)
})

test('a process whose database does not answer is not ready, and lives', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const ask = async (path: string) => {
    const answer = await fetch(`${service.urls.ops}${path}`)
    return [answer.status, await answer.text()] as const
  }
  assert.deepEqual(await ask('/readyz'), [200, '{"ok":true}'])
  await service.store.close()
  const text = await eventually(async () => {
    const [status, text] = await ask('/readyz')
    return status === 503 ? text : null
  })
  assert.match(text, /"code":"store_unavailable"/)
  assert.equal((await ask('/livez'))[0], 200)
})
