/** How workers on PostgreSQL learn of each other's deaths: session locks, poolers, and who may still send. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { goneForMs, workerLockClass } from '../../src/store/postgres/worker-session.ts'
import type { Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { lacking } from '../support/installed.ts'
import { pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { postgresUrl, runSql } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { delivered, newSender, request } from './subject.ts'

const ring = newRing()

async function openWorker(scope: Scope, url: string, listenUrl?: string): Promise<Store> {
  const [address, listenAt] = [databaseAt(url), listenUrl === undefined ? undefined : databaseAt(listenUrl)]
  assert.ok(address.engine === 'postgres' && listenAt?.engine !== 'sqlite')
  const options = { address, ring, queueMax: 1000, ...(listenAt && { listenAt }) }
  const store = await openPostgresStore(options)
  atEnd(scope, () => store.close())
  store.startWorker(() => {})
  return store
}

const anything = { max: 9, perApp: 9, leases: [] }
const schemaOf = (url: string): string => /schema=(\w+)/.exec(url)?.[1] ?? ''
const locks = `select pid from pg_locks where locktype = 'advisory' and classid = ${workerLockClass} and objsubid = 2`
/** Ends the sessions of the workers that hold leases of this schema. */
const cutSessions = (url: string) =>
  runSql(
    url,
    `select pg_terminate_backend(pid) from (${locks} and objid::bigint in (select holder from "${schemaOf(url)}".queue)) l`,
  )

/** The first claim that hands something out. */
const claimOnceDue = (store: Store, withinMs?: number) =>
  eventually(async () => {
    const claimed = await store.claimDue(anything)
    return claimed.claims.length > 0 ? claimed : null
  }, withinMs)

test('the mail of a worker that closed its session is taken back, with a line in the record', async (t) => {
  const url = await postgresUrl(t)
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const { claims, isAlive } = await claimOnceDue(one)
  const [held] = claims
  assert.ok(held && isAlive())
  assert.deepEqual((await other.claimDue(anything)).claims, [])
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
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const { claims, isAlive } = await claimOnceDue(one)
  const [held] = claims
  assert.ok(held && isAlive())
  await cutSessions(url)
  await eventually(() => !isAlive())
  assert.equal(await one.recordOutcome(held, delivered), true, 'nobody has taken it yet')
  await other.enqueue(request(other, await newSender(other, 'b')))
  const later = await claimOnceDue(one)
  await eventually(() => later.isAlive(), 5000)
})

test('after the sessions of all workers were cut, they have time to record what they have sent', async (t) => {
  const url = await postgresUrl(t)
  const [one, other] = [await openWorker(t, url), await openWorker(t, url)]
  await one.enqueue(request(one, await newSender(one, 'a')))
  const [held] = (await claimOnceDue(one)).claims
  assert.ok(held)
  const sessions = `select pid from pg_stat_activity where query like 'select ''postern_${schemaOf(url)}'' as worker'`
  await eventually(async () => (await runSql(url, sessions)).length === 2)
  await runSql(url, `select pg_terminate_backend(pid) from (${sessions}) s`)
  const endMs = performance.now() + 2 * goneForMs
  while (performance.now() < endMs) assert.deepEqual((await other.claimDue(anything)).claims, [])
  assert.equal(await one.recordOutcome(held, delivered), true)
})

test('behind a transaction pooler no session lock is taken, and leases lapse', {
  skip: lacking({ pgbouncer }),
}, async (t) => {
  const direct = await postgresUrl(t)
  const pooled = await startPgbouncer(t, direct)
  const store = await openWorker(t, pooled)
  await store.enqueue(request(store, await newSender(store, 'a')))
  const { claims, isAlive } = await claimOnceDue(store)
  assert.equal(claims.length, 1)
  const schema = schemaOf(direct)
  assert.deepEqual(await runSql(direct, `select holder from "${schema}".queue`), [{ holder: 0 }])
  assert.ok(isAlive(), 'the lease alone decides')
  const detail = async (worker: Store) =>
    (await worker.examine()).find(({ check }) => check === 'worker session')?.detail ?? ''
  assert.match(await detail(store), /not direct .*for up to 60 s.*POSTERN_DATABASE_LISTEN_URL/)

  const both = await openWorker(t, pooled, direct)
  assert.match(await detail(both), /^direct/)
  await both.enqueue(request(both, await newSender(both, 'b')))
  await claimOnceDue(both)
  const holders = await runSql<{ holder: number }>(
    direct,
    `select holder from "${schema}".queue order by holder`,
  )
  assert.equal(holders.length, 2)
  assert.ok((holders[1]?.holder ?? 0) > 0)
})
