/**
 * Faults of a PostgreSQL server: it is down, hangs, holds locks, loses its standby, loses the answer, runs
 * out of connections. Tests are named after rows of the fault matrix (see docs/postgresql.md for what an
 * operator sees). A 503 must come in bounded time. A 202 must never be sent before the email is durable.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { startService } from '../../src/compose/service.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { leaseMs, type Store } from '../../src/store/store.ts'
import { delivered, newSender as newSubject, request } from '../conformance/subject.ts'
import { databaseAt } from '../support/database.ts'
import { deleteApp } from '../support/operator.ts'
import { type PostgresServer, runSql, startCluster, startPostgres } from '../support/postgres.ts'
import { newRing, newSender, relayTo, send, startTestService, type TestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

let serial = 0
const someone = () => validBody({ to: `r${serial++}@example.com` })

async function connect(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  atEnd(t, () => client.end().catch(() => {}))
  return client
}

const serve = (
  t: TestContext,
  server: Pick<PostgresServer, 'url'>,
  more: { port?: number } = {},
): Promise<TestService> =>
  startTestService(t, {
    database: databaseAt(more.port === undefined ? server.url : server.url.replace(/:\d+\//, `:${more.port}/`)),
    roles: new Set(['api', 'links'] as const),
    linksBaseUrl: 'https://links.test',
  })

/** Posts until an answer is 202. Earlier ones must be 503 with Retry-After. */
async function untilAccepted(service: TestService): Promise<void> {
  await eventually(async () => {
    const answer = await service.post(someone())
    if (answer.status === 202) return true
    assert.equal(answer.status, 503)
    assert.ok(Number(answer.headers.get('retry-after')) > 0)
    return false
  })
}

async function unavailable(t: TestContext, service: TestService): Promise<void> {
  const begunMs = performance.now()
  const answer = await service.post(someone())
  t.diagnostic(`503 after ${Math.round(performance.now() - begunMs)} ms`)
  assert.deepEqual([answer.status, answer.body.error.code], [503, 'queue_unavailable'])
}

async function openAt(t: TestContext, url: string, clock = newClockOffset(), ring = newRing()): Promise<Store> {
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const store = await openPostgresStore({ address, ring, queueMax: 1_000_000, clock })
  atEnd(t, () => store.close())
  return store
}

const queued = async (server: PostgresServer): Promise<number> =>
  Number((await runSql<{ n: string }>(server.url, 'select count(*) as n from postern.queue'))[0]?.n)

test('row 13: the server is stopped, and goes on; is killed, and starts again', async (t) => {
  const server = await startPostgres(t)
  const service = await serve(t, server)
  await untilAccepted(service)
  const other = await openAt(t, server.url, newClockOffset(), service.config.ring)
  server.signal('SIGSTOP')
  await unavailable(t, service)
  assert.equal((await fetch(`${service.urls.ops}/readyz`)).status, 503)
  assert.equal((await fetch(`${service.urls.ops}/livez`)).status, 200)
  assert.match(await (await fetch(`${service.urls.ops}/metrics`)).text(), /postern_requests_total\{.*503/)
  await other.close()
  server.signal('SIGCONT')
  await untilAccepted(service)
  await server.kill()
  await unavailable(t, service)
  const page = await fetch(`${service.urls.links}/acme/${'x'.repeat(100)}`)
  assert.deepEqual([page.status, page.headers.get('retry-after')], [503, '5'])
  assert.ok(!service.log.some((line) => line.includes('a bug')))
  await startCluster(t, server.folder, { port: String(server.port) })
  await untilAccepted(service)
})

test('row 14: another session holds an app’s lock: 503 for that app, and what was refused is not queued', async (t) => {
  const server = await startPostgres(t)
  const service = await serve(t, server)
  await untilAccepted(service)
  const before = await queued(server)
  const holder = await connect(t, server.url)
  await holder.query('begin')
  await holder.query('select from postern.app_lock where app_id = $1 for update', [service.app.id])
  await unavailable(t, service)
  await holder.query('rollback')
  await untilAccepted(service)
  assert.equal(await queued(server), before + 1)
})

test('row 14: the standby is missing: no 202, also where the wait is cancelled', async (t) => {
  const server = await startPostgres(t)
  const service = await serve(t, server)
  await untilAccepted(service)
  await runSql(server.url, "alter system set synchronous_standby_names = 'nobody'")
  await runSql(server.url, 'alter system set client_min_messages = error')
  await runSql(server.url, 'select pg_reload_conf()')
  // The server's processes read the setting one after another: until then it does not wait for a standby.
  await eventually(async () => (await service.post(someone())).status === 503)
  await unavailable(t, service)
  const answered = service.post(someone()).then((answer) => answer.status)
  const cancelWaits = `select pg_cancel_backend(pid) from pg_stat_activity
    where wait_event = 'SyncRep' and application_name = 'postern'`
  const cancelling = { on: true, count: 0 }
  void answered.finally(() => {
    cancelling.on = false
  })
  while (cancelling.on) cancelling.count += (await runSql(server.url, cancelWaits)).length
  assert.equal(await answered, 503)
  assert.ok(cancelling.count > 0)
  await runSql(server.url, 'alter system reset synchronous_standby_names')
  await runSql(server.url, 'select pg_reload_conf()')
  await untilAccepted(service)
})

test('row 16: the reply to the commit is lost: 503, and the retry queues nothing twice', async (t) => {
  const server = await startPostgres(t)
  const proxy = await startProxy(t, server.port)
  const service = await serve(t, server, { port: proxy.port })
  await untilAccepted(service)
  const before = await queued(server)
  const body = JSON.stringify(someone())
  const headers = { 'idempotency-key': 'once' }
  proxy.loseReplies(true)
  assert.equal((await service.post(body, headers)).status, 503)
  proxy.loseReplies(false)
  const again = await eventually(async () => {
    const answer = await service.post(body, headers)
    return answer.status === 202 ? answer : null
  })
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(await queued(server), before + 1)
})

test('row 17: all lanes wait: 503 in bounded time, while workers deliver on connections of their own', async (t) => {
  const server = await startPostgres(t)
  const relay = await startSmtpServer(t)
  const service = await serve(t, server)
  const senders = await Promise.all(Array.from({ length: 24 }, (_, i) => newSender(service, `s${i}`)))
  const post = (key: string) => send(service.apiUrl, JSON.stringify(someone()), { authorization: `Bearer ${key}` })
  for (const { key } of senders) assert.equal((await post(key)).status, 202)
  const holder = await connect(t, server.url)
  await holder.query('begin')
  await holder.query('select from postern.app_lock for update')
  const answers = senders.map(({ key }) => post(key))
  const { config } = service
  const worker = await startService(
    {
      ...config,
      roles: new Set(['worker']),
      relays: [relayTo(relay.port)],
      console: null,
      logLevel: 'silent',
    },
    { onFatal: assert.fail, version: 'test' },
  )
  atEnd(t, () => worker.stop())
  await eventually(() => relay.received.length === senders.length)
  const statuses = (await Promise.all(answers)).map((answer) => answer.status)
  assert.deepEqual([...new Set(statuses)], [503])
  await holder.query('rollback')
  await untilAccepted(service)
})

test('row 17: the server has no connection left: 503, and it recovers', async (t) => {
  const server = await startPostgres(t, { max_connections: '20', superuser_reserved_connections: '0' })
  const service = await serve(t, server)
  const others: pg.Client[] = []
  await eventually(() =>
    connect(t, server.url).then(
      (client) => void others.push(client),
      () => true,
    ),
  )
  await unavailable(t, service)
  for (const other of others) await other.end()
  await untilAccepted(service)
})

test('a server whose default is not to wait for the disk: what was promised is on it', async (t) => {
  const flags = { synchronous_commit: 'off', wal_writer_delay: '10000' }
  const server = await startPostgres(t, flags)
  const current = { server }
  const store = await openAt(t, server.url)
  const sender = await newSubject(store, 'a')
  const crash = async () => {
    await current.server.kill()
    current.server = await startCluster(t, server.folder, { ...flags, port: String(server.port) })
  }
  const answer = await store.enqueue(request(store, sender))
  assert.ok(answer.kind === 'queued')
  const state = async () => (await store.findEmail(answer.emailId))?.state
  await crash()
  assert.equal(await eventually(state), 'queued')
  const held = await eventually(async () => (await store.claimDue({ max: 1, perApp: 9, leases: [] })).claims[0])
  await crash()
  assert.equal(await eventually(state), 'sending')
  assert.equal(await store.recordOutcome(held, delivered), true)
  await crash()
  assert.equal(await eventually(state), 'delivered')
})

test('row 29: after an outage longer than a lease, who sent an email may still say so', async (t) => {
  const server = await startPostgres(t)
  const proxy = await startProxy(t, server.port)
  const [clock, ring] = [newClockOffset(), newRing()]
  const sent = await openAt(t, server.url, clock, ring)
  const cutOff = await openAt(t, server.url.replace(/:\d+\//, `:${proxy.port}/`), clock, ring)
  const sender = await newSubject(sent, 'a')
  await sent.enqueue(request(sent, sender))
  const [held] = (await sent.claimDue({ max: 1, perApp: 9, leases: [] })).claims
  assert.ok(held)
  proxy.loseReplies(true)
  await assert.rejects(cutOff.claimDue({ max: 1, perApp: 9, leases: [] }), { name: 'StoreUnavailable' })
  proxy.loseReplies(false)
  moveClock(clock, leaseMs)
  assert.deepEqual((await cutOff.claimDue({ max: 1, perApp: 9, leases: [] })).claims, [])
  assert.equal(await sent.recordOutcome(held, delivered), true)
})

test('deleting an app while its outcomes are recorded: neither waits for the other for ever', async (t) => {
  const server = await startPostgres(t)
  const store = await openAt(t, server.url)
  for (let round = 0; round < 5; round++) {
    const sender = await newSubject(store, `a${round}`)
    await Promise.all(Array.from({ length: 300 }, () => store.enqueue(request(store, sender))))
    const { claims } = await store.claimDue({ max: 250, perApp: 250, leases: [] })
    assert.equal(claims.length, 250)
    const outcomes = claims.toReversed().map((held) => store.recordOutcome(held, delivered))
    await deleteApp(store, sender.app.id)
    while ((await store.cancelDeletedAppMail(sender.app.id)).length > 0);
    await Promise.all(outcomes)
  }
  await eventually(async () => {
    await store.maintain()
    return (await store.readQueueGauge()).depth === 0
  })
})

test('row 14: claims that wait for a standby that is gone do not add up on the server', async (t) => {
  const server = await startPostgres(t)
  const store = await openAt(t, server.url)
  const sender = await newSubject(store, 'a')
  for (let i = 0; i < 3; i++) await store.enqueue(request(store, sender))
  await runSql(server.url, "alter system set synchronous_standby_names = 'nobody'")
  await runSql(server.url, 'select pg_reload_conf()')
  await eventually(async () => {
    const [row] = await runSql<{ synchronous_standby_names: string }>(server.url, 'show synchronous_standby_names')
    return row?.synchronous_standby_names === 'nobody'
  })
  for (let i = 0; i < 3; i++)
    await assert.rejects(store.claimDue({ max: 1, perApp: 9, leases: [] }), { name: 'StoreUnavailable' })
  const waiting = await runSql(server.url, "select 1 from pg_stat_activity where wait_event = 'SyncRep'")
  assert.equal(waiting.length, 1)
})

test('a server that dies under look-ups of pages and operators takes no process with it', async (t) => {
  const server = await startPostgres(t)
  const store = await openAt(t, server.url)
  const blocker = await connect(t, server.url)
  await blocker.query('begin; lock table postern.app')
  const lookups = [store.findAppBySlug('a'), store.listApps(), store.listApps(), store.listApps()]
  const settled = Promise.allSettled(lookups)
  const waiting = "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'"
  // Not over `blocker`: within a transaction the view does not change.
  await eventually(async () => ((await runSql<{ n: number }>(server.url, waiting))[0]?.n ?? 0) >= 3)
  await server.kill()
  for (const result of await settled) {
    assert.equal(result.status, 'rejected')
    assert.equal((result.reason as Error).name, 'StoreUnavailable')
  }
})

test('one process holds at most the connections that the operations page names', async (t) => {
  const server = await startPostgres(t)
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, {
    database: databaseAt(server.url),
    relays: [relayTo(relay.port)],
    linksBaseUrl: 'https://links.test',
  })
  const { store } = service
  const senders = await Promise.all(Array.from({ length: 8 }, (_, n) => newSender(service, `s${n}`)))
  const at = service.store.now()
  for (const { key } of senders) {
    const answer = await service.post(validBody({}, at), { authorization: `Bearer ${key}` })
    assert.equal(answer.status, 202)
  }
  const lookups = Array.from({ length: 20 }, () => [store.listApps(), store.findAppBySlug('s0')])
  await Promise.all(lookups.flat())
  await eventually(async () => (await store.readQueueGauge()).depth === 0)
  const count = "select count(*)::int as n from pg_stat_activity where application_name = 'postern'"
  // Maintenance opens the last one. One more is open only while the process starts.
  await eventually(async () => (await runSql<{ n: number }>(server.url, count))[0]?.n === 13)
})
