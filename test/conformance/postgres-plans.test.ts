/** Plans of PostgreSQL: how many rows the functions read, whatever the statistics say. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { Claim, Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { postgresUrl, runSql, schemaOf, startPostgres } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { deferred, delivered, newSender, request, type Sender } from './subject.ts'

const queueMany = (store: Store, sender: Sender, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => store.enqueue(request(store, sender, { to: `p${n}@x.org` }))))

/** Claims `count` emails, and renews and records each. */
async function sendSome(store: Store, count: number): Promise<void> {
  let claims: readonly Claim[] = []
  for (let sent = 0; sent < count; sent += claims.length) {
    claims = (await store.claimDue({ max: 50, perApp: 50, leases: claims })).claims
    await store.renewLeases(claims)
    await Promise.all(
      claims.map((claim, n) => store.recordOutcome(claim, n % 10 === 0 ? deferred(3_600_000) : delivered)),
    )
  }
}

test('statistics that were taken while the queue was empty make no claim and no outcome read the whole queue', async (t) => {
  const url = await postgresUrl(t)
  const schema = schemaOf(url)
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const ring = newRing()
  const open = async () => {
    const store = await openPostgresStore({ address, ring, queueMax: 1_000_000 })
    atEnd(t, () => store.close()) // also when the test fails: an open store keeps the process
    return store
  }
  const read = async () => {
    const [row] = await runSql<{ read: string }>(
      url,
      `select sum(idx_tup_read) + (select seq_tup_read from pg_stat_user_tables where relname = 'queue' and schemaname = '${schema}') as read
       from pg_stat_user_indexes where relname = 'queue' and schemaname = '${schema}'`,
    )
    return Number(row?.read)
  }
  const first = await open()
  const sender = await newSender(first, 'acme', { daily: 1_000_000, keyPerMinute: 1_000_000 })
  await queueMany(first, sender, 300)
  await sendSome(first, 300)
  await runSql(url, `delete from "${schema}".queue`)
  await first.close()
  await runSql(url, `vacuum (analyze) "${schema}".queue`)

  const second = await open()
  await queueMany(second, sender, 3000)
  const before = await read()
  await sendSome(second, 500)
  await second.close()
  await eventually(async () => {
    const [row] = await runSql<{ left: number }>(
      url,
      `select count(*)::int as left from pg_stat_activity where pid <> pg_backend_pid() and query like '%${schema}%'`,
    )
    return row?.left === 0
  })
  const rows = (await read()) - before // connections report what they have read when they end, at the latest
  assert.ok(rows > 500 && rows < 20_000, `${rows} rows read for 500 emails`)
})

test('no statement takes a second core from the mail', async (t) => {
  const { url } = await startPostgres(t)
  await runSql(url, 'alter database postgres set debug_parallel_query = on') // a worker for every plan that allows it
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const store = await openPostgresStore({ address, ring: newRing(), queueMax: 1_000_000 })
  atEnd(t, () => store.close())
  await queueMany(store, await newSender(store, 'acme'), 3)
  await store.summariseQueue()
  await store.measureQueue()
  await store.listEmails({ limit: 10 })
  await store.close()
  await eventually(
    async () => (await runSql(url, "select 1 from pg_stat_activity where application_name = 'postern'")).length === 0,
  )
  // Sessions have reported when they end, at the latest.
  const launched = 'select parallel_workers_launched::int as launched from pg_stat_database'
  const rows = await runSql(url, `${launched} where datname = current_database()`)
  assert.deepEqual(rows, [{ launched: 0 }])
})
