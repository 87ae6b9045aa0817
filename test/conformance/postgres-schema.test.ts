/** The PostgreSQL store alone: its schema, its TLS, its connections and the content of its tables. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { FinalState } from '../../src/domain/delivery/states.ts'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { Connection } from '../../src/store/postgres/engine/connection.ts'
import { dialWritable } from '../../src/store/postgres/engine/dial.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { migrationSteps } from '../../src/store/shared/migrations.ts'
import { postern } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { listEmails, operator } from '../support/operator.ts'
import {
  cutSessions,
  makeCluster,
  openClient,
  postgresUrl,
  runSql,
  schemaOf,
  startCluster,
  startPostgres,
} from '../support/postgres.ts'
import { newRing, startTestService, validBody } from '../support/service.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { kinds, newSender, request } from './subject.ts'

async function openAt(scope: Scope, url: string, ring = newRing()) {
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const store = await openPostgresStore({ address, ring, queueMax: 1_000_000 })
  atEnd(scope, () => store.close())
  return store
}

test('a strict statement fails if the server warns, as it does when a standby is lost', async (t) => {
  const address = databaseAt(await postgresUrl(t))
  assert.ok(address.engine === 'postgres')
  const connection = new Connection({ address })
  atEnd(t, () => connection.close())
  const raise = (level: string, strict: boolean) =>
    connection.query(`do $$ begin raise ${level} 'of %', 'this'; end $$`, [], { deadlineMs: 10_000, strict })
  await assert.rejects(raise('warning', true), /the database warned: of this/)
  for (const [level, strict] of [
    ['warning', false],
    ['notice', true],
  ] as const)
    assert.deepEqual(await raise(level, strict), [])
})

test('the server checks every second that the client of a statement is still connected', async (t) => {
  const address = databaseAt(await postgresUrl(t))
  assert.ok(address.engine === 'postgres')
  const { client } = await dialWritable(address, performance.now() + 10_000)
  atEnd(t, () => client.end())
  const { rows } = await client.query('show client_connection_check_interval')
  assert.deepEqual(rows, [{ client_connection_check_interval: '1s' }])
})

test('both engines have the same migrations', () => {
  const names = (engine: string) =>
    migrationSteps(new URL(`../../src/store/${engine}/migrations/`, import.meta.url)).map(({ file }) =>
      file.pathname.split('/').at(-1),
    )
  assert.deepEqual(names('postgres'), names('sqlite'))
  assert.ok(names('sqlite').length > 0)
})

test('every step after the first gives up when it cannot lock a table within a second', () => {
  const later = migrationSteps(new URL('../../src/store/postgres/migrations/', import.meta.url)).slice(1)
  assert.ok(later.length > 0)
  for (const { file } of later) assert.match(readFileSync(file, 'utf8'), /^set local lock_timeout = '1s';$/m)
})

test('several processes that start at once make one schema and one hash key', async (t) => {
  const url = await postgresUrl(t)
  const ring = newRing()
  const stores = await Promise.all(Array.from({ length: 5 }, () => openAt(t, url, ring)))
  const [one] = stores
  assert.ok(one)
  const sender = await newSender(one, 'a', { recipientPerHour: 1 })
  const answers = await Promise.all(stores.map((store) => store.enqueue(request(store, sender, { to: 'ada@x.org' }))))
  assert.deepEqual(kinds(answers), { queued: 1, recipient_rate_limited: 4 })
  const steps = await runSql(url, `select version from "${schemaOf(url)}".migration order by version`)
  assert.deepEqual(
    steps,
    [1, 2, 3, 4, 5].map((version) => ({ version })),
  )
})

test('a server that would lose mail, and a database that would change texts or transactions, are refused', async (t) => {
  const { url } = await startPostgres(t)
  const refused = async (name: string, why: RegExp) =>
    assert.rejects(openAt(t, url.replace(/postgres$/, name)), { name: 'StoreUnavailable', message: why })
  await runSql(url, "create database ascii encoding SQL_ASCII locale 'C' template template0")
  await refused('ascii', /encoding is SQL_ASCII; make it with UTF8/)
  await runSql(url, 'create database strict')
  await runSql(url, "alter database strict set default_transaction_isolation = 'serializable'")
  await refused('strict', /must be "read committed"/)
  for (const setting of ['fsync', 'full_page_writes']) {
    await runSql(url, `alter system set ${setting} = off`)
    await runSql(url, 'select pg_reload_conf()')
    const isOff = async () =>
      (await runSql<{ off: boolean }>(url, `select current_setting('${setting}') = 'off' as off`))[0]?.off
    await eventually(isOff)
    await refused('postgres', /would not be durable/)
    await runSql(url, `alter system reset ${setting}`)
    await runSql(url, 'select pg_reload_conf()')
    await eventually(async () => !(await isOff()))
  }
  await openAt(t, url)
})

test('rows 5 and 6: a step that fails leaves nothing; a newer schema is refused and left as it is', async (t) => {
  const url = await postgresUrl(t)
  const schema = schemaOf(url)
  await runSql(url, `create schema "${schema}"; create table "${schema}".queue (in_the_way int)`)
  await assert.rejects(openAt(t, url), /already exists/)
  const tables = () =>
    runSql(url, `select relname from pg_class where relkind = 'r' and relnamespace = '${schema}'::regnamespace`)
  assert.deepEqual(await tables(), [{ relname: 'queue' }])
  await runSql(url, `drop table "${schema}".queue`)
  await (await openAt(t, url)).close()
  await runSql(url, `insert into "${schema}".migration values (999, now())`)
  const ran = await postern({ POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEYS: newSecretKey('k1') }, ['app', 'list'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /schema 999.*newer Postern/)
})

test('a schema that PostgreSQL refuses to make is refused with its words', async (t) => {
  const url = await postgresUrl(t)
  await assert.rejects(openAt(t, url.replace(/schema=\w+/, 'schema=pg_mine')), /unacceptable schema name "pg_mine"/)
})

test('a database that a version before the release made is refused in words', async (t) => {
  const url = await postgresUrl(t)
  await (await openAt(t, url)).close()
  const schema = schemaOf(url)
  await runSql(url, `drop table "${schema}".activity; alter table "${schema}".refusal drop column origin`)
  await assert.rejects(openAt(t, url), {
    name: 'SchemaMismatch',
    message: /lacks activity, refusal\.origin: .*never released/,
  })
})

const outcomes: Record<'delivered' | 'failed' | 'expired', DeliveryOutcome> = {
  delivered: { kind: 'delivered', reply: parseReply('250 ok'), relay: 'r' },
  failed: { kind: 'failed', reply: parseReply('550 no'), relay: 'r', reason: 'refused_by_relay' },
  expired: { kind: 'expired' },
}

for (const state of ['delivered', 'failed', 'expired', 'cancelled'] satisfies FinalState[]) {
  test(`an email that is ${state} leaves no content in the tables, sealed or not`, async (t) => {
    const url = await postgresUrl(t)
    const service = await startTestService(t, { roles: new Set(['api'] as const), database: databaseAt(url) })
    const canary = { to: 'canary-recipient@example.com', organisationName: 'canary', inviterName: 'canary' }
    const body = validBody({
      ...canary,
      type: 'organisation_invite',
      url: 'https://app.acme.test/?token=canary',
    })
    assert.equal((await service.post(body, { 'idempotency-key': 'canary-key' })).status, 202)
    const tables = ['app', 'rate_bucket', 'idempotency', 'usage_day', 'queue', 'history', 'secret']
    const rows = async () =>
      (
        await Promise.all(
          tables.map((table) => runSql(url, `select t::text as row from "${schemaOf(url)}".${table} t`)),
        )
      )
        .flat()
        .map(({ row }) => String(row))
        .join('\n')
    const [row] = await runSql<{ sealed: string }>(
      url,
      `select encode(sealed, 'hex') as sealed from "${schemaOf(url)}".queue`,
    )
    assert.ok(row && (await rows()).includes(row.sealed))
    const [email] = await listEmails(service.store, { limit: 1 })
    assert.ok(email)
    if (state === 'cancelled') await service.store.cancelEmail(email.id, operator)
    else {
      const [claim] = (await service.store.claimDue({ max: 1, perApp: 1, leases: [] })).claims
      assert.ok(claim)
      await service.store.recordOutcome(claim, outcomes[state])
    }
    assert.equal((await service.store.findEmail(email.id))?.state, state)
    const left = await rows()
    assert.ok(!left.includes(row.sealed))
    assert.doesNotMatch(left, /canary/)
  })
}

test('TLS to the database: a certificate that does not verify is refused', async (t) => {
  const folder = makeCluster(t)
  for (const name of ['localhost.cert.pem', 'localhost.key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../support/tls/${name}`, import.meta.url)), join(folder, name))
    chmodSync(join(folder, name), 0o600)
    if (process.getuid?.() === 0) chownSync(join(folder, name), 65_534, 65_534)
  }
  const { port } = await startCluster(t, folder, {
    ssl: 'on',
    ssl_cert_file: 'localhost.cert.pem',
    ssl_key_file: 'localhost.key.pem',
    listen_addresses: '127.0.0.1,127.0.0.2',
  })
  const url = `postgres://postgres@localhost:${port}/postgres`
  await assert.rejects(openAt(t, `${url}?sslmode=verify-full`), /self-signed certificate/)
  const ca = fileURLToPath(new URL('../support/tls/localhost.cert.pem', import.meta.url))
  await assert.rejects(openAt(t, `postgres://postgres@127.0.0.2:${port}/postgres?sslrootcert=${ca}`), /altnames/)
  const store = await openAt(t, `${url}?sslrootcert=${ca}`)
  assert.deepEqual(await store.listApps(), [])
  const [row] = await runSql<{ n: number }>(
    url,
    "select count(*)::int as n from pg_stat_ssl join pg_stat_activity using (pid) where ssl and application_name = 'postern'",
  )
  assert.ok(Number(row?.n) > 0)
})

test('a read-only server is not used', async (t) => {
  const url = await postgresUrl(t)
  const role = `reader_${schemaOf(url)}`
  await runSql(url, `create role "${role}" login; alter role "${role}" set default_transaction_read_only = on`)
  atEnd(t, () => runSql(url, `drop role "${role}"`))
  await assert.rejects(openAt(t, url.replace('postgres@', `${role}@`)), {
    name: 'StoreUnavailable',
    message: /read-only/,
  })
})

test('an app is deleted after the requests under way for it, so that none of its mail is left behind', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const { app } = await newSender(store, 'a')
  await store.updateApp(app.id, { status: 'disabled' }, operator)
  const schema = schemaOf(url)
  const underWay = await openClient(t, url)
  const lock = `select from "${schema}".app_lock where app_id = '${app.id}' for update`
  await underWay.query('begin')
  assert.equal((await underWay.query(lock)).rowCount, 1)
  const deletion = store.deleteApp(app.id, operator)
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%"${schema}".app_lock%'`
  await eventually(async () => (await runSql(url, waiting)).length === 1)
  await underWay.query('rollback')
  assert.equal(await deletion, 'deleted')
})

test('a request that waits behind one that hangs is given up after the time of a request', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const sender = await newSender(store, 'a')
  await store.enqueue(request(store, sender))
  const schema = schemaOf(url)
  const holding = await openClient(t, url)
  await holding.query(`begin; select from "${schema}".app_lock where app_id = '${sender.app.id}' for update`)
  const hangs = assert.rejects(store.enqueue(request(store, sender)), { name: 'StoreUnavailable' })
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%"${schema}".%'`
  await eventually(async () => (await runSql(url, waiting)).length === 1)
  await assert.rejects(store.enqueue(request(store, sender)), { message: /^no answer within \d/ })
  await hangs
})

test('a key that an operator is changing holds up no request, and one made meanwhile leaves with its app', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const sender = await newSender(store, 'a')
  const schema = schemaOf(url)
  const changing = await openClient(t, url)
  await changing.query(`begin; select from "${schema}".delivery_key where key_id = '${sender.keyId}' for update`)
  assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
  await changing.query('rollback')
  await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
  const next = { hash: hashDeliveryKey(newDeliveryKey()), expiresAt: null, oldExpiresAt: store.now() + 1000 }
  const [replaced] = await Promise.all([
    store.replaceKey(sender.keyId, next, operator),
    store.deleteApp(sender.app.id, operator),
  ])
  assert.ok(replaced === null || typeof replaced === 'object')
  const left = await runSql(url, `select 1 from "${schema}".delivery_key`)
  assert.equal(left.length, 0)
})

test('word of a queued email reaches other processes, also after the listening connection was lost', async (t) => {
  const url = await postgresUrl(t)
  const ring = newRing()
  const [store, other] = [await openAt(t, url, ring), await openAt(t, url, ring)]
  const sender = await newSender(store, 'a')
  const rings = { own: 0, others: 0 }
  store.openWorkerSession(() => rings.own++)
  other.openWorkerSession(() => rings.others++)
  await eventually(() => rings.own === 1 && rings.others === 1) // once as listening begins
  assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
  await eventually(() => rings.others === 2)
  await cutSessions(url, 2)
  await eventually(() => rings.others === 3 && rings.own === 2) // each listens again
  assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
  await eventually(() => rings.others === 4)
  assert.equal(rings.own, 2)
})

test('a database that would not keep what it is given is refused', async (t) => {
  const url = await postgresUrl(t)
  const role = `careless_${schemaOf(url)}`
  await runSql(
    url,
    `create role "${role}" login superuser; alter role "${role}" set default_transaction_isolation = serializable`,
  )
  atEnd(t, () => runSql(url, `drop role "${role}"`))
  await assert.rejects(openAt(t, url.replace('postgres@', `${role}@`)), /default_transaction_isolation/)
})

/** Holds the table `app`, so that every look-up of an app waits. Returns the end of it. */
async function lockApps(t: TestContext, url: string): Promise<() => Promise<unknown>> {
  const holder = await openClient(t, url)
  await holder.query(`begin; lock table "${schemaOf(url)}".app in access exclusive mode`)
  return () => holder.query('rollback')
}

test('any number of page views delays neither readiness nor a key that was not seen yet', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  await newSender(store, 'a')
  const unlock = await lockApps(t, url)
  const views = Promise.allSettled(Array.from({ length: 5000 }, (_, n) => store.findAppBySlug(`x${n}`)))
  assert.equal((await store.readQueueGauge()).depth, 0)
  const unknown = hashDeliveryKey(newDeliveryKey())
  assert.equal((await store.enqueue({ keyHash: unknown, judged: null })).kind, 'invalid_key')
  await unlock()
  const refused = (await views).filter(({ status }) => status === 'rejected')
  assert.ok(refused.length >= 4800, `${refused.length} views were refused at once`)
  assert.equal((await store.findAppBySlug('a'))?.slug, 'a')
})

test('a page view that hangs is given up, and the next one uses a new connection', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  await newSender(store, 'a')
  const unlock = await lockApps(t, url)
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%"${schemaOf(url)}".app%'`
  await assert.rejects(store.findAppBySlug('a'), { name: 'StoreUnavailable' })
  await eventually(async () => (await runSql(url, waiting)).length === 0) // the server has given it up too
  await unlock()
  assert.equal((await store.findAppBySlug('a'))?.slug, 'a')
})

test('page views that were given up while they waited take no connection with them', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  await newSender(store, 'a')
  const unlock = await lockApps(t, url)
  const many = await Promise.allSettled(Array.from({ length: 12 }, () => store.findAppBySlug('a')))
  assert.ok(many.every(({ status }) => status === 'rejected'))
  await unlock()
  for (let round = 0; round < 2; round++) {
    const found = await Promise.all(Array.from({ length: 4 }, () => store.findAppBySlug('a')))
    assert.deepEqual(new Set(found.map((app) => app?.slug)), new Set(['a']))
  }
})

test('the clock is that of the server, whatever this machine’s says', async (t) => {
  const url = await postgresUrl(t)
  const hour = 3_600_000
  const realMs = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now: realMs + hour })
  const store = await openAt(t, url)
  assert.ok(Math.abs(store.now() - realMs) < 60_000, `${store.now() - realMs}`)
})

test('a command that only looks makes no schema', async (t) => {
  const url = await postgresUrl(t)
  const env = { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEYS: newSecretKey('k1') }
  const ran = await postern(env, ['app', 'list'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /no Postern database .* yet/)
  assert.deepEqual(await runSql(url, `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`), [])
})
