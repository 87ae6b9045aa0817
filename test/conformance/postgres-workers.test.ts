/** How workers on PostgreSQL learn of each other's deaths: session locks, poolers, and who may still send. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { appsPerClaim } from '../../src/domain/bounds.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { missingForMs, sessionLockClass } from '../../src/store/postgres/queue/missing-sessions.ts'
import type { Claim, Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { lacking } from '../support/installed.ts'
import { startPgbouncer } from '../support/pgbouncer.ts'
import { freePort } from '../support/ports.ts'
import { cutSessions, openClient, postgresUrl, runSql, schemaOf } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { delivered, newSender, request } from './subject.ts'

const ring = newRing()

async function openStore(scope: Scope, url: string, sessionUrl = url): Promise<Store> {
  const [address, sessionAt] = [databaseAt(url), databaseAt(sessionUrl)]
  assert.ok(address.engine === 'postgres' && sessionAt.engine === 'postgres')
  const options = { address, sessionAt, ring, queueMax: 1000 }
  const store = await openPostgresStore(options)
  atEnd(scope, () => store.close())
  return store
}

async function openWorker(scope: Scope, url: string, sessionUrl?: string): Promise<Store> {
  const store = await openStore(scope, url, sessionUrl)
  store.openWorkerSession(() => {})
  return store
}

const anything = { max: 9, perApp: 9, leases: [] }
const sessionIds = async (url: string): Promise<number[]> => {
  const rows = await runSql<{ session_id: number }>(
    url,
    `select session_id from "${schemaOf(url)}".queue order by session_id`,
  )
  return rows.map((row) => row.session_id)
}

/** The first claim that hands something out. */
const claimOnceDue = (store: Store, withinMs?: number) =>
  eventually(async () => {
    const claimed = await store.claimDue(anything)
    return claimed.claims.length > 0 ? claimed : null
  }, withinMs)

test('the mail of a worker that closed its session is taken back, with a line in the record, whatever others lock', async (t) => {
  const url = await postgresUrl(t)
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const { claims, areLeasesValid } = await claimOnceDue(one)
  const [held] = claims
  assert.ok(held && areLeasesValid())
  assert.deepEqual((await other.claimDue(anything)).claims, [])
  const stranger = await openClient(t, url)
  const [id] = await sessionIds(url)
  await stranger.query('select pg_advisory_lock($1, $2)', [sessionLockClass + 1, id])
  await one.close()
  const taken = await claimOnceDue(other)
  assert.equal(taken.claims[0]?.emailId, held.emailId)
  assert.deepEqual(
    (await other.findEmail(held.emailId))?.trail.map(({ outcome }) => outcome),
    ['lost'],
  )
})

test('a worker whose session was cut knows at once that its leases are lost', async (t) => {
  const url = await postgresUrl(t)
  const one = await openWorker(t, url)
  await one.enqueue(request(one, await newSender(one, 'a')))
  const { claims, areLeasesValid } = await claimOnceDue(one)
  const [held] = claims
  assert.ok(held && areLeasesValid())
  await cutSessions(url, 1)
  await eventually(() => !areLeasesValid())
  assert.equal(await one.recordOutcome(held, delivered), true, 'nobody has taken it yet')
  await one.enqueue(request(one, await newSender(one, 'b')))
  const later = await claimOnceDue(one)
  assert.ok(later.areLeasesValid())
  assert.ok(
    (await sessionIds(url)).every((id) => id > 0),
    'the new lease names the new session',
  )
})

test('a session that could not adopt the mail of the one before tries again', async (t) => {
  const url = await postgresUrl(t)
  const one = await openWorker(t, url)
  const sender = await newSender(one, 'a')
  await one.enqueue(request(one, sender))
  await claimOnceDue(one)
  const [before] = await sessionIds(url)
  const rename = (from: string, to: string) => runSql(url, `alter table "${schemaOf(url)}"."${from}" rename to "${to}"`)
  await rename('queue', 'away')
  await cutSessions(url, 1)
  const locks = `select from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and classid = ${sessionLockClass} and objid::bigint <> ${before}
      and query = 'select ''postern_${schemaOf(url)}'' as worker'`
  await eventually(async () => (await runSql(url, locks)).length > 0) // and the update after it has failed
  await rename('away', 'queue')
  await eventually(async () => ![before, 0].includes((await sessionIds(url))[0]))
})

test('a worker goes on to confirm its session', async (t) => {
  const url = await postgresUrl(t)
  await openWorker(t, url)
  const text = `select query_start::text as at from pg_stat_activity
    where query = 'select ''postern_${schemaOf(url)}'' as worker'`
  const confirmations = new Set<string>()
  await eventually(async () => {
    for (const { at } of await runSql<{ at: string }>(url, text)) confirmations.add(at)
    return confirmations.size >= 10 // with growing pauses, as after a failure, this takes most of a minute
  })
})

test('a worker that gets notifications asks again only if it could not take all there was', async (t) => {
  const url = await postgresUrl(t)
  const worker = await openWorker(t, url)
  const sender = await newSender(worker, 'a')
  await worker.enqueue(request(worker, sender))
  assert.equal((await claimOnceDue(worker)).more, false)
  for (let n = 0; n < 3; n++) await worker.enqueue(request(worker, sender))
  const { claims, more } = await worker.claimDue({ ...anything, max: 2 })
  assert.deepEqual([claims.length, more], [2, true])
  for (let n = 0; n <= appsPerClaim; n++) await worker.enqueue(request(worker, await newSender(worker, `a${n}`)))
  assert.equal((await worker.claimDue({ max: 256, perApp: 1, leases: [] })).more, true, 'of more apps')
  const pooled = await openStore(t, url)
  assert.equal((await pooled.claimDue(anything)).more, true, 'it has no session, and so no notifications')
})

test('apps whose mail another transaction holds do not keep the turn', async (t) => {
  const url = await postgresUrl(t)
  const worker = await openWorker(t, url)
  const senders = await Promise.all(Array.from({ length: 9 }, (_, n) => newSender(worker, `a${n}`)))
  for (const sender of senders) await worker.enqueue(request(worker, sender))
  const apps = senders.map(({ app }) => app.id).toSorted()
  const [free, ...held] = apps.toReversed()
  const holder = await openClient(t, url)
  await holder.query('begin')
  await holder.query(`select from "${schemaOf(url)}".queue where app_id = any($1) for update`, [held])
  const take = async () => {
    const { claims, more } = await worker.claimDue({ ...anything, max: 1 })
    return [claims.map(({ appId }) => appId), more]
  }
  assert.deepEqual(await take(), [[], false], 'it may not ask again at once, for as long as they are held')
  assert.deepEqual(await take(), [[free], true])
})

test('others are notified of mail that the worker of the same process may not take at once', async (t) => {
  const url = await postgresUrl(t)
  const worker = await openWorker(t, url)
  const sender = await newSender(worker, 'a')
  const listener = await openClient(t, url)
  let heard = 0
  listener.on('notification', () => void heard++)
  await listener.query(`listen "postern_${schemaOf(url)}"`)
  const queue = () => worker.enqueue(request(worker, sender))
  const takeAll = async () => assert.equal((await claimOnceDue(worker)).more, false)
  await queue()
  await eventually(() => heard === 1, 5000)
  await takeAll()
  // A notification is sent after 25 ms; on a slow machine the claim may come later than that.
  await eventually(async () => {
    heard = 0
    await queue()
    await takeAll()
    await setTimeout(100)
    return heard === 0
  })
  await queue()
  await eventually(() => heard === 1, 5000) // it did not claim
  await takeAll()
  await queue()
  await worker.claimDue({ ...anything, perApp: 1 })
  await eventually(() => heard === 2, 5000) // the app has reached its share
})

test('a URL whose hosts are one server gives one session', async (t) => {
  const url = await postgresUrl(t)
  const { port } = new URL(url)
  const twice = url.replace(/@[^/]+/, `@127.0.0.1:${port},localhost:${port}`)
  const worker = await openWorker(t, twice)
  await worker.enqueue(request(worker, await newSender(worker, 'a')))
  await claimOnceDue(worker)
  assert.ok((await sessionIds(url)).every((id) => id > 0))
})

test('a worker whose session alone was cut keeps the mail that it has sent: it is not taken back', async (t) => {
  const url = await postgresUrl(t)
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const { claims, areLeasesValid } = await claimOnceDue(one)
  const [held] = claims
  assert.ok(held)
  const [before] = await sessionIds(url)
  await runSql(
    url,
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 2 and objid::bigint = ${before}`,
  )
  const endMs = performance.now() + 2 * missingForMs
  while (performance.now() < endMs) assert.deepEqual((await other.claimDue(anything)).claims, [])
  assert.equal(areLeasesValid(), false, 'nothing more of it may be handed over')
  assert.notDeepEqual(await sessionIds(url), [before])
  assert.equal(await one.recordOutcome(held, delivered), true)
})

test('after the sessions of all workers were cut, they have time to record what they have sent', async (t) => {
  const url = await postgresUrl(t)
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const [held] = (await claimOnceDue(one)).claims
  assert.ok(held)
  await cutSessions(url, 2)
  const endMs = performance.now() + 2 * missingForMs
  while (performance.now() < endMs) assert.deepEqual((await other.claimDue(anything)).claims, [])
  assert.equal(await one.recordOutcome(held, delivered), true)
})

test('a connection that the server closed while nothing was asked of it fails no request', async (t) => {
  const url = await postgresUrl(t)
  const store = await openWorker(t, url)
  const sender = await newSender(store, 'a')
  await store.enqueue(request(store, sender))
  const sessions = `from pg_stat_activity where pid <> pg_backend_pid() and query like '%"${schemaOf(url)}"%'`
  const cut = await runSql(url, `select pg_terminate_backend(pid) ${sessions}`)
  assert.ok(cut.length > 0)
  await eventually(async () => (await runSql(url, `select pid ${sessions}`)).length === 0)
  assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
})

for (const [what, statement, fail] of [
  ['an outcome', 'record_', (store: Store, claim: Claim) => store.recordOutcome(claim, delivered)],
  ['a renewal', 'lease_until', (store: Store, claim: Claim) => store.renewLeases([claim])],
] as const)
  test(`after ${what} of a worker has failed, it leaves the mail of others alone for a while`, async (t) => {
    const url = await postgresUrl(t)
    const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
    const sender = await newSender(one, 'a')
    await one.enqueue(request(one, sender))
    const [held] = (await claimOnceDue(one)).claims
    await other.enqueue(request(other, sender))
    const [own] = (await claimOnceDue(other)).claims
    assert.ok(held && own)
    const blocker = await openClient(t, url)
    await blocker.query(`begin; lock table "${schemaOf(url)}".queue in access exclusive mode`)
    const failing = assert.rejects(async () => fail(other, own), { name: 'StoreUnavailable' })
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()
      and wait_event_type = 'Lock' and query like '%"${schemaOf(url)}"%' and query like '%${statement}%'`
    await eventually(async () => (await runSql(url, cut)).length > 0)
    await failing
    await blocker.query('rollback')
    await one.close() // as if its way to the database came back later
    const endMs = performance.now() + 2 * missingForMs
    while (performance.now() < endMs) {
      const claims = (await other.claimDue(anything)).claims.map(({ emailId }) => emailId)
      assert.ok(!claims.includes(held.emailId), 'it may have been sent, and not recorded yet')
    }
  })

test('behind a transaction pooler there is no session; leases lapse', {
  skip: lacking('pgbouncer'),
}, async (t) => {
  const direct = await postgresUrl(t)
  const pooled = await startPgbouncer(t, direct)
  const store = await openWorker(t, pooled)
  await store.enqueue(request(store, await newSender(store, 'a')))
  const { claims, areLeasesValid } = await claimOnceDue(store)
  assert.equal(claims.length, 1)
  assert.deepEqual(await sessionIds(direct), [0])
  assert.ok(areLeasesValid(), 'the lease alone decides')
  const detail = async (worker: Store) =>
    (await worker.examine()).find(({ check }) => check === 'worker session')?.detail ?? ''
  assert.match(await detail(store), /not direct .*for up to 60 s.*POSTERN_DATABASE_LISTEN_URL/)

  const both = await openWorker(t, pooled, direct)
  assert.match(await detail(both), /^direct/)
  await both.enqueue(request(both, await newSender(both, 'b')))
  await claimOnceDue(both)
  const ids = await sessionIds(direct)
  assert.deepEqual([ids.length, ids[0]], [2, 0])
  assert.ok((ids[1] ?? 0) > 0)
})

test('a server that does not answer is asked again after a pause', async (t) => {
  const url = await postgresUrl(t)
  const askedAtMs: number[] = []
  const server = createServer((socket) => {
    askedAtMs.push(performance.now())
    socket.destroy()
  }).listen(0, '127.0.0.1')
  atEnd(t, () => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await openWorker(t, url, url.replace(/@[^/]+/, `@127.0.0.1:${port}`))
  const [first = 0, second = 0] = await eventually(() => (askedAtMs.length > 1 ? askedAtMs : null))
  assert.ok(second - first > 400, `${second - first} ms`)
})

test('doctor says that a worker has its session', async (t) => {
  const store = await openWorker(t, await postgresUrl(t))
  const finding = (await store.examine()).find(({ check }) => check === 'worker session')
  assert.deepEqual([finding?.ok, finding?.detail.split(':', 1)[0]], [true, 'direct'])
})

test('doctor says when the connection for the session fails', async (t) => {
  const url = await postgresUrl(t)
  const worker = await openWorker(t, url, url.replace(/@[^/]+/, `@127.0.0.1:${await freePort()}`))
  const finding = (await worker.examine()).find(({ check }) => check === 'worker session')
  assert.equal(finding?.ok, false)
  assert.match(finding?.detail ?? '', /^cannot be opened: no writable database.*ECONNREFUSED/)
})
