/** `postern copy`: a SQLite database with everything in it moves to PostgreSQL. */
import assert from 'node:assert/strict'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { hashDeliveryKey, newAuthHookSecret, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { endStates, liveStates } from '../../src/domain/delivery/states.ts'
import { type EmailId, newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { sealAuthHookSecret } from '../../src/store/crypto/auth-hook-secret.ts'
import { formatKeyRing, type KeyRing } from '../../src/store/crypto/key-ring.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { postern, posternJson, spawnServe, type Variables } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { listEmails, operator } from '../support/operator.ts'
import { postgresUrl } from '../support/postgres.ts'
import { newRing, send, testSettings, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { claim, deferred, delivered } from './subject.ts'

type Places = { from: Variables; to: Variables; targetFile: string; path: string }

async function places(t: Scope): Promise<Places & { ring: ReturnType<typeof newRing> }> {
  const folder = temporaryFolder(t)
  const ring = newRing()
  const secrets = { POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  const url = await postgresUrl(t)
  const [targetFile, path] = [join(folder, 'target'), join(folder, 'postern.db')]
  writeFileSync(targetFile, `${url}\n`, { mode: 0o600 })
  const from = { ...secrets, POSTERN_DATABASE_URL: `sqlite:${path}` }
  return { from, to: { ...secrets, POSTERN_DATABASE_URL: url }, targetFile, path, ring }
}

/** An app with limits that no test reaches, and its key. */
async function newAcme(store: Store): Promise<string> {
  const limits = { keyPerMinute: 1_000_000, recipientPerHour: 1000, daily: 10_000_000 }
  const app = await store.createApp('acme', { ...testSettings, limits }, operator)
  assert.ok(app)
  const key = newDeliveryKey()
  await store.createKey({ app: app.id, hash: hashDeliveryKey(key), name: 'one', expiresAt: null }, operator)
  return key
}

/** Posts through `postern serve` on this environment; `stop` ends it. */
async function serve(t: Scope, env: Variables, relayPort: number) {
  const { api, child } = await spawnServe(t, {
    ...env,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relayPort}`,
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_CONSOLE_LISTEN: 'off',
  })
  const post = (key: string, body: unknown, idempotencyKey = '') =>
    send(`${api}/v1/email`, JSON.stringify(body), {
      authorization: `Bearer ${key}`,
      'idempotency-key': idempotencyKey,
    })
  const stop = () => {
    child.kill('SIGTERM')
    return new Promise((resolve) => child.once('exit', resolve))
  }
  return { post, stop }
}

const goneAddress = 'gone@example.com'

/** Suppresses an address by a report, and then by an operator for all apps. */
async function suppressGone(store: Store) {
  const app = await store.findAppBySlug('acme')
  const id = newId('em', store.now())
  assert.ok(app)
  const content = {
    to: goneAddress as EmailAddress,
    url: 'https://app.acme.test',
    messageIdDomain: 'acme.test',
  }
  const admit = {
    id,
    type: 'magic_link',
    expiresAt: store.now() + 60_000,
    traceparent: null,
    supersedeKey: null,
    content,
  } as const
  const judged = { version: app.version, verdict: { admit }, idempotency: null }
  await store.enqueue({ appId: app.id, judged })
  for (const lease of await claim(store)) await store.recordOutcome(lease, delivered)
  const reply = parseReply('550 5.1.1 no such user')
  const finding = {
    kind: 'bounced',
    about: 'recipient',
    permanent: true,
    cause: 'no_mailbox',
    reply,
  } as const
  await store.recordReport({ email: id, source: 'mail', finding, destination: 'gmx' })
  const recipient = store.nameRecipient(goneAddress as EmailAddress)
  const until = store.now() + 3_600_000
  await store.setSuppression({ app: null, recipient, destination: 'other', until }, operator)
  const suppressions = await store.listSuppressions({ apps: null, limit: 10 })
  assert.equal(suppressions.items.length, 2)
  return suppressions
}

async function addSigningKey(store: Store, ring: KeyRing) {
  const [app] = await store.listApps()
  assert.ok(app)
  const named = { domain: 'acme.test', selector: 'p1' }
  const key = await makeSigningKey(ring, { ...named, algorithm: 'ed25519' })
  await store.addSigningKey({ ...key, app: app.id }, operator)
  await store.activateSigningKey({ ...named, app: app.id }, operator)
  return store.listSigningKeys(null)
}

/** The secret that an auth server signs with, sealed. */
async function addAuthHookSecret(store: Store, ring: KeyRing) {
  const [app] = await store.listApps()
  assert.ok(app)
  const hash = hashDeliveryKey(newAuthHookSecret())
  const sealed = sealAuthHookSecret(ring, { hash }, 'a-signing-key-of-zitadel')
  const key = { app: app.id, hash, name: 'auth-hook', expiresAt: null, hook: 'zitadel', sealed } as const
  await store.createKey(key, operator)
  return { hash, sealed }
}

test('keys, replays, look-ups, suppressions, usage and queued mail hold after the move', async (t) => {
  const { from, to, targetFile, path, ring } = await places(t)
  const store = await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })
  const key = await newAcme(store)
  const suppressions = await suppressGone(store)
  const sources = await store.listReportSources()
  assert.equal(sources.length, 1)
  const signingKeys = await addSigningKey(store, ring)
  const authHookSecret = await addAuthHookSecret(store, ring)
  await store.close()
  const before = await serve(t, from, 1) // no relay is there: mail stays queued
  const bodies = Array.from({ length: 5 }, (_, n) => validBody({ to: `r${n}@example.com` }))
  const ids = await Promise.all(
    bodies.map(async (body, n) => (await before.post(key, body, `i${n}`)).headers.get('email-id')),
  )
  const refused = await before.post(key, validBody({ url: 'https://elsewhere.test/' }))
  assert.equal(refused.status, 400)
  await before.stop()
  const usage = await posternJson(from, ['usage', 'acme'])

  const ran = await postern(from, ['copy', '--to', `file:${targetFile}`])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /copied 1 app, 2 delivery keys, 5 queued emails and 1 record/)
  assert.deepEqual(await posternJson(to, ['usage', 'acme']), usage)
  const [found] = await posternJson<{ id: string }[]>(to, ['email', 'list', '--to', 'r3@example.com'])
  assert.equal(found?.id, ids[3])
  const relay = await startSmtpServer(t)
  const after = await serve(t, to, relay.port)
  const replayed = await after.post(key, bodies[2], 'i2')
  assert.equal(replayed.headers.get('email-id'), ids[2])
  assert.equal(replayed.headers.get('idempotent-replayed'), 'true')
  assert.equal((await after.post(key, validBody({ to: 'new@example.com' }))).status, 202)
  assert.equal((await after.post(key, validBody({ to: goneAddress }))).status, 202)
  await eventually(() => relay.received.length >= 6)
  const recipients = relay.received.flatMap((mail) => mail.to).sort()
  assert.deepEqual(recipients, [...bodies.map(({ to: recipient }) => recipient), 'new@example.com'].sort())
  await after.stop()
  const { depth } = await posternJson<{ depth: number }>(to, ['queue'])
  assert.equal(depth, 0)
  const [suppressed] = await posternJson<{ state: string }[]>(to, ['email', 'list', '--to', goneAddress])
  assert.equal(suppressed?.state, 'suppressed')
  const address = databaseAt(`${to.POSTERN_DATABASE_URL}`)
  assert.ok(address.engine === 'postgres')
  const copied = await openPostgresStore({ address, ring, queueMax: 1000 })
  atEnd(t, () => copied.close())
  assert.deepEqual(await copied.listSuppressions({ apps: null, limit: 10 }), suppressions)
  assert.deepEqual(await copied.listReportSources(), sources)
  assert.deepEqual(await copied.listSigningKeys(null), signingKeys)
  assert.deepEqual(await copied.listAuthHookSecrets('acme', 'zitadel'), [{ ...authHookSecret, hook: 'zitadel' }])
  for (const { raw } of relay.received) assert.match(raw, /^DKIM-Signature: .* d=acme\.test;\r\n s=p1;/)

  const again = await postern(from, ['copy', '--to', `file:${targetFile}`])
  assert.equal(again.code, 1)
  assert.match(again.err, /there is no database at/)
})

test('a target that has a schema is refused, also an empty one that a service may use; the file stays', async (t) => {
  const { from, to, targetFile, path, ring } = await places(t)
  await (await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })).close()
  await posternJson(to, ['migrate'])
  const ran = await postern(from, ['copy', '--to', `file:${targetFile}`])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /the target already has the schema "\w+", from an earlier copy or another Postern/)
  assert.deepEqual(await posternJson(from, ['app', 'list']), [])
})

test('200,000 records in every state move, and each table has as many rows as before', async (t) => {
  const { from, to, targetFile, path, ring } = await places(t)
  const store = await openSqliteStore({ path, ring, queueMax: 1_000_000, onFatal: assert.fail })
  await newAcme(store)
  await fillEveryState(store, path)
  const beganMs = performance.now()
  const ran = await posternJson<{ copied: Record<string, number>; previous: string }>(from, [
    'copy',
    '--to',
    `file:${targetFile}`,
  ])
  t.diagnostic(`${JSON.stringify(ran.copied)} in ${((performance.now() - beganMs) / 1000).toFixed(1)} s`)
  assert.ok(!existsSync(path), 'no service sends from it again')
  renameSync(ran.previous, path)
  const source = new DatabaseSync(path, { readOnly: true })
  atEnd(t, () => source.close())
  for (const [table, copied] of Object.entries(ran.copied)) {
    assert.equal(source.prepare(`select count(*) as n from ${table}`).get()?.n, copied, table)
  }
  type Listed = { id: EmailId; state: string; type: string; acceptedAt: string; expiresAt: string }
  for (const state of [...liveStates, ...endStates]) {
    const list = (env: Variables) => posternJson<Listed[]>(env, ['email', 'list', '--state', state, '--limit', '20'])
    const [there, here] = [await list(to), await list(from)]
    assert.ok(there.length > 0, state)
    assert.deepEqual(there, here, state)
    for (const { id } of there.slice(0, 2))
      assert.deepEqual(await posternJson(to, ['email', 'show', id]), await posternJson(from, ['email', 'show', id]))
  }
})

/** Emails in each state by the store itself, and copies of their rows up to 200,000. */
async function fillEveryState(store: Store, path: string): Promise<void> {
  const { request, newSender } = await import('./subject.ts')
  const sender = await newSender(store, 'other', { keyPerMinute: 1_000_000 })
  const queue = async (idem: string, lifeMs = 900_000) => {
    const result = await store.enqueue(request(store, sender, { idem, lifeMs }))
    assert.equal(result.kind, 'queued')
  }
  const outcomes = [
    delivered,
    { ...deferred(0), kind: 'failed', reason: 'refused' },
    { kind: 'expired' },
    deferred(3_600_000),
  ] as Parameters<Store['recordOutcome']>[1][]
  for (let n = 0; n < 3 * outcomes.length; n++) await queue(`outcome ${n}`)
  for (const [n, { emailId, fence }] of (await claim(store, 3 * outcomes.length)).entries())
    assert.ok(await store.recordOutcome({ emailId, fence }, outcomes[n % outcomes.length] ?? delivered))
  for (let n = 0; n < 3; n++) await queue(`sending ${n}`)
  await claim(store, 3)
  for (let n = 0; n < 3; n++) await queue(`cancelled ${n}`)
  const records = await listEmails(store, { state: 'queued', limit: 3 })
  for (const { id } of records) await store.cancelEmail(id, operator)
  for (let n = 0; n < 3; n++) await queue(`queued ${n}`)
  const suppressed = {
    app: null,
    recipient: store.nameRecipient(goneAddress as EmailAddress),
    destination: 'other',
  } as const
  await store.setSuppression({ ...suppressed, until: store.now() + 60_000 }, operator)
  for (let n = 0; n < 3; n++) {
    const { kind } = await store.enqueue(request(store, sender, { to: goneAddress }))
    assert.equal(kind, 'suppressed')
  }
  await store.close()
  const database = new DatabaseSync(path)
  database.exec('begin')
  for (const [table, count] of [
    ['history', 150_000],
    ['queue', 50_000],
  ] as const) {
    const columns = database.prepare(`select name from pragma_table_info('${table}')`).all()
    const rest = columns.map(({ name }) => name).filter((name) => name !== 'email_id')
    database.exec(`with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ${count})
      insert into ${table} (email_id, ${rest}) select 'em_0' || n, ${rest} from counted
        join (select row_number() over () as k, count(*) over () as rows, * from ${table}) on k = 1 + n % rows`)
  }
  database.exec('update queue_depth set count = (select count(*) from queue); commit')
  database.close()
}

test('a copy is refused with a password on the command line, while a process runs, or to another SQLite file', async (t) => {
  const { from, targetFile, path, ring } = await places(t)
  await (await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })).close()
  const secret = await postern(from, ['copy', '--to', 'postgres://postern:s3cret@127.0.0.1/postern'])
  assert.equal(secret.code, 2)
  assert.match(secret.err, /other users can see.*file:PATH/)
  assert.doesNotMatch(secret.err, /s3cret/)
  assert.match((await postern(from, ['copy', '--to', 'sqlite:/tmp/x.db'])).err, /must be a postgres:\/\/ URL/)
  const open = new DatabaseSync(path, { readOnly: true })
  open.prepare('select * from app').all()
  const busy = await postern(from, ['copy', '--to', `file:${targetFile}`])
  open.close()
  assert.equal(busy.code, 1)
  assert.match(busy.err, /has the database \S+ open: stop the service, .* before a copy/)
})

test('a backup on PostgreSQL names its own tools', async (t) => {
  const { to } = await places(t)
  await posternJson(to, ['migrate'])
  const ran = await postern(to, ['backup', join(temporaryFolder(t), 'file')])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /on PostgreSQL: use its own tools, such as pg_dump/)
})
