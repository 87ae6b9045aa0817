/**
 * Plans of PostgreSQL: how many rows the functions read, whatever the statistics say. On a server of their
 * own: a transaction that another test leaves open makes every scan read rows that were deleted.
 */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { idFloor } from '../../src/domain/id.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { Claim, Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { postgresUrl, runSql, schemaOf, startPostgres } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { day, deferred, delivered, newSender, request, type Sender } from './subject.ts'

const server = await startPostgres({ after })

/** Opens stores on one database, each with connections and plans of its own. */
function newOpener(t: TestContext, url: string): () => Promise<Store> {
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const ring = newRing()
  return async () => {
    const store = await openPostgresStore({ address, ring, queueMax: 1e9 })
    atEnd(t, () => store.close()) // also when the test fails: an open store keeps the process
    return store
  }
}

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

/** Connections report what they have read when they end, at the latest. */
const untilReported = (url: string) =>
  eventually(async () => {
    const [row] = await runSql<{ left: number }>(
      url,
      `select count(*)::int as left from pg_stat_activity
        where pid <> pg_backend_pid() and query like '%${schemaOf(url)}%'`,
    )
    return row?.left === 0
  })

test('statistics that were taken while the queue was empty make no claim and no outcome read the whole queue', async (t) => {
  const url = await postgresUrl(t, server)
  const schema = schemaOf(url)
  const open = newOpener(t, url)
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
  await untilReported(url)
  let rows = 0
  // PostgreSQL 14 counts a moment later.
  await eventually(async () => {
    rows = (await read()) - before
    return rows > 500
  })
  assert.ok(rows < 20_000, `${rows} rows read for 500 emails`)
})

test('no statement takes a second core from the mail', async (t) => {
  const { url } = await startPostgres(t)
  await runSql(url, 'alter database postgres set debug_parallel_query = on') // a worker for every plan that allows it
  const store = await newOpener(t, url)()
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

/** The tables that grow with the mail, and rows of other apps for them, some old: `n` counts these. */
const growing: Readonly<Record<string, string>> = {
  queue: `email_id, app_id, key_id, type, state, attempts, lost_leases, fence, accepted_at, expires_at, due_at, wanted_at,
    lease_until, session_id, recipient, trail, sealed) select 'em_0' || n, 'app_' || n % 100, 'key_1', 'magic_link',
    case when n <= 300 and n % 2 = 0 then 'sending' else 'deferred' end, 0, 0, 0, {now}, {now} + 86400000, {now} + 3600000,
    {now} + 3600000, {now} + 3600000, 0, 'r' || n, '[]', 'x'`,
  history: `email_id, app_id, key_id, type, state, attempts, lost_leases, accepted_at, expires_at, finished_at,
    recipient, trail) select 'em_' || case when n <= 20000 then '{oldTime}' else '{idTime}' end || n, 'app_' || n % 100, 'key_1',
    'magic_link', 'delivered', 1, 0, {now},
    {now}, {now}, 'r' || n, '[]'`,
  idempotency: `app_id, request_key, body_hash, email_id, created_at)
    select 'app_' || n % 100, 'k' || n, 'b', 'em_0' || n, {now}`,
  rate_bucket: "app_id, bucket, arrival_us) select 'app_' || n % 100, 'b' || n, ({now} + 3600000) * 1000",
  usage_day: "app_id, day, event, slot, count) select 'app_' || n, {now} / 86400000, 'accepted', 0, 1",
  suppression: `suppression_id, app_id, recipient, reason, strikes, at, until, invitations_until, forget_at, bounced_at,
    destination) select 'sp_' || n, 'app_' || n % 100, 'r' || n, 'no_mailbox', 1, {now}, {now} + 3600000,
    {now} + 3600000, {now} + 86400000, 0, 'other'`,
  refusal: `request_id, at, app_id, key_id, code, issues)
    select 'req_' || '{idTime}' || n, {now}, 'app_' || n % 100, 'key_1', 'invalid_url', '[]'`,
  webhook_message: `message_id, app_id, event, facts, at, due_at, tries)
    select 'wh_' || '{idTime}' || n, 'app_' || n % 100, 'email.failed', '{}', {now}, null, 1`,
  strike_count: "app_id, destination, since, count, capped) select 'app_' || n, '', {now}, 1, 1",
}

async function fillTables(url: string, rows: number): Promise<void> {
  const nowMs = Date.now()
  const timeOf = (ms: number) => idFloor('em', ms).slice(3)
  for (const [table, text] of Object.entries(growing)) {
    const filled = text
      .replaceAll('{now}', `${nowMs}::bigint`)
      .replaceAll('{idTime}', timeOf(nowMs))
      .replaceAll('{oldTime}', timeOf(nowMs - 40 * day))
    const name = `"${schemaOf(url)}".${table}`
    await runSql(url, `insert into ${name} (${filled} from generate_series(1, ${rows}) n`)
    await runSql(url, `vacuum (analyze) ${name}`)
  }
}

/** Counts of the server for each growing table: scans of all of it, and the index entries that were read. */
async function readCounters(url: string): Promise<Record<string, { readonly scans: number; readonly read: number }>> {
  const rows = await runSql<{ name: string; scans: string; read: string }>(
    url,
    `select regexp_replace(relname, '^history_.*', 'history') as name, sum(seq_scan) as scans,
      sum((select sum(idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid)) as read
    from pg_stat_user_tables t where schemaname = '${schemaOf(url)}' group by 1`,
  )
  return Object.fromEntries(rows.map(({ name, scans, read }) => [name, { scans: Number(scans), read: Number(read) }]))
}

/** Emails are accepted, replayed, superseded, claimed, delivered or not, reported and maintained. */
async function useMailPath(store: Store, sender: Sender): Promise<void> {
  await queueMany(store, sender, 100)
  for (const more of [
    { idem: 'a' },
    { idem: 'a' },
    { supersedeKey: 's', to: 's@x.org' },
    { supersedeKey: 's', to: 's@x.org' },
  ])
    await store.enqueue(request(store, sender, more))
  await sendSome(store, 20)
  const claims = (await store.claimDue({ max: 5, perApp: 50, leases: [] })).claims
  const [one, two, three] = claims
  assert.ok(one && two && three)
  const failed = {
    kind: 'failed',
    reply: parseReply('550 5.1.1 no such user'),
    relay: 'r',
    reason: 'refused_by_relay',
  } as const
  await store.recordOutcome(one, failed)
  await store.recordOutcome(two, { kind: 'expired' })
  await store.recordOutcome(three, delivered)
  await store.strikeRefused({ email: one.emailId, destination: 'other', reply: failed.reply.text })
  assert.ok(await store.findReported(three.emailId))
  const finding = {
    kind: 'bounced',
    about: 'recipient',
    permanent: true,
    cause: 'no_mailbox',
    reply: failed.reply,
  } as const
  const recorded = await store.recordReport({ email: three.emailId, source: 'mail', finding, destination: 'other' })
  assert.equal(recorded.kind, 'recorded')
  await store.listDueWebhooks()
  await store.readQueueGauge()
  // One step: the next one may read what this one has deleted, as long as another session could see it.
  await store.maintain()
}

async function measureMailPath(t: TestContext, rows: number): Promise<Record<string, { scans: number; read: number }>> {
  const url = await postgresUrl(t, server)
  const open = newOpener(t, url)
  const first = await open()
  const sender = await newSender(first, 'acme')
  await first.maintain()
  await first.close()
  await fillTables(url, rows)
  const before = await readCounters(url)
  const store = await open()
  await useMailPath(store, sender)
  await store.close()
  await untilReported(url)
  const after = await readCounters(url)
  const difference = (table: string, what: 'scans' | 'read') =>
    (after[table]?.[what] ?? Number.NaN) - (before[table]?.[what] ?? Number.NaN)
  return Object.fromEntries(
    Object.keys(growing).map((name) => [name, { scans: difference(name, 'scans'), read: difference(name, 'read') }]),
  )
}

test('with 100,000 rows in each table, the mail path scans no table that grows, and reads little of it', async (t) => {
  for (const [table, { read, scans }] of Object.entries(await measureMailPath(t, 100_000))) {
    assert.equal(scans, 0, table)
    assert.ok(read < 5000, `${table}: ${read} index entries for 100 emails`)
  }
})

test('with 3,000 apps that have ready mail, a claim does not read all apps', async (t) => {
  const url = await postgresUrl(t, server)
  const open = newOpener(t, url)
  const first = await open()
  await queueMany(first, await newSender(first, 'acme', { keyPerMinute: 1000 }), 1)
  await first.close()
  const schema = schemaOf(url)
  const columns = 'version, status, status_at, created_at, updated_at, settings'
  await runSql(
    url,
    `insert into "${schema}".app (app_id, slug, ${columns})
      select 'app_' || n, 's' || n, ${columns} from "${schema}".app, generate_series(1, 3000) n;
    insert into "${schema}".queue select (jsonb_populate_record(q,
        jsonb_build_object('email_id', 'em_' || n, 'app_id', 'app_' || n % 3000 + 1))).*
      from "${schema}".queue q, generate_series(1, 20000) n`,
  )
  for (const table of ['app', 'queue']) await runSql(url, `vacuum (analyze) "${schema}".${table}`)
  const store = await open()
  const before = await readCounters(url)
  for (let n = 0; n < 5; n++) {
    const { ended } = await store.claimDue({ max: 32, perApp: 50, leases: [] })
    assert.ok(ended.length > 0, 'the content of the copies is that of another email')
  }
  await store.close()
  await untilReported(url)
  assert.equal((await readCounters(url)).app?.scans, before.app?.scans)
})
