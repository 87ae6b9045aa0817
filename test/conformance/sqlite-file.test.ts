/** The SQLite file: schema, owner, WAL and lock. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { startService } from '../../src/compose/service.ts'
import { scanMax } from '../../src/domain/bounds.ts'
import { suspectAfter } from '../../src/domain/delivery/states.ts'
import type { AppId, EmailId } from '../../src/domain/id.ts'
import { hashSessionSecret, newSessionSecret } from '../../src/domain/operator/sign-in.ts'
import { newSecretKey, parseKeyRing } from '../../src/store/crypto/key-ring.ts'
import type { EmailQuery, EmailRecord, ListPage } from '../../src/store/operator-store.ts'
import { newClockOffset } from '../../src/store/shared/clock.ts'
import { Connection, keepsCommits } from '../../src/store/sqlite/engine/connection.ts'
import type { ScriptTarget } from '../../src/store/sqlite/engine/run-script.ts'
import { newestSchema } from '../../src/store/sqlite/files/migrate.ts'
import { openSqliteStore, type SqliteOptions } from '../../src/store/sqlite/sqlite-store.ts'
import { copy } from '../../src/store/sqlite/threads/checkpointer.ts'
import { performRead } from '../../src/store/sqlite/threads/reads.ts'
import { ReaderThread } from '../../src/store/sqlite/threads/threads.ts'
import type { Judged } from '../../src/store/store.ts'
import { postern, posternJson, type Variables } from '../support/cli.ts'
import { newRing, newSender, relayTo, startTestService, testSettings, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { newSender as newSubjectSender, request } from './subject.ts'

const sqliteEnvironment = (scope: Scope): Variables => ({
  POSTERN_DATABASE_URL: `sqlite:${join(temporaryFolder(scope), 'postern.db')}`,
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
})
const pathOf = (env: Variables): string => (env.POSTERN_DATABASE_URL ?? '').replace('sqlite:', '')

test('row 5: a step that fails half-way leaves nothing; the next start goes on, also several at once', async (t) => {
  const own = sqliteEnvironment(t)
  const reader = new Connection(pathOf(own), { isNew: true })
  atEnd(t, () => reader.close())
  reader.connection.exec('create table history (in_the_way integer)')
  const failed = await postern(own, ['migrate'])
  assert.equal(failed.code, 1)
  assert.match(failed.err, /history already exists/)
  const tables = reader.sql("select name from sqlite_schema where type = 'table' and name <> 'migration'").all()
  assert.deepEqual(
    tables.map(({ name }) => name),
    ['history'],
  )
  assert.deepEqual(reader.sql('select * from migration').all(), [])
  reader.connection.exec('drop table history')
  const again = await Promise.all([1, 2, 3].map(() => postern(own, ['migrate'])))
  assert.deepEqual(
    again.map(({ code }) => code),
    [0, 0, 0],
  )
  assert.equal(reader.sql('select * from migration').all().length, newestSchema())
})

test('rows 6 and 10: a newer schema and a damaged file are refused, and left as they are', async (t) => {
  const own = sqliteEnvironment(t)
  await posternJson(own, ['migrate'])
  const path = pathOf(own)
  const database = new Connection(path)
  database.connection.exec('insert into migration values (999, 0)')
  database.close()
  const newer = await postern(own, ['app', 'list'])
  assert.equal(newer.code, 1)
  assert.match(newer.err, /schema 999.*newer Postern/)
  writeFileSync(path, 'this is no database, and it must not be made one'.repeat(100))
  const before = readFileSync(path)
  const damaged = await postern(own, ['app', 'list'])
  assert.equal(damaged.code, 1)
  assert.match(damaged.err, /damaged/)
  assert.deepEqual(readFileSync(path), before)
})

test('a database that a version before the release made is refused in words', async (t) => {
  const own = sqliteEnvironment(t)
  await posternJson(own, ['migrate'])
  const database = new Connection(pathOf(own))
  database.connection.exec('drop table activity; drop table node; alter table refusal drop column origin')
  database.close()
  for (const command of [['migrate'], ['app', 'list']]) {
    const ran = await postern(own, command)
    assert.equal(ran.code, 1)
    assert.match(ran.err, /the database lacks activity, refusal\.origin, node: .*never released/)
  }
})

test('row 12: the WAL starts over while the load lasts: it does not grow with the emails', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 1_000_000, onFatal: assert.fail })
  atEnd(t, () => store.close())
  const sender = await newSubjectSender(store, 'acme', { keyPerMinute: 1_000_000 })
  let left = 60_000
  const client = async () => {
    while (left-- > 0) assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
  }
  await Promise.all(Array.from({ length: 512 }, client))
  const mebibytes = statSync(`${path}-wal`).size / 2 ** 20
  assert.ok(mebibytes < 150, `${mebibytes} MiB`)
})

test('row 12: while a backup holds the WAL back, the writer is not asked to copy all of it', (t) => {
  const path = join(temporaryFolder(t), 'copied.db')
  const [database, backup] = [new Connection(path, { isNew: true }), new Connection(path)]
  atEnd(t, () => {
    for (const each of [database, backup]) each.close()
  })
  database.connection.exec('create table page (content blob)')
  backup.connection.exec('begin; select count(*) from page')
  const insert = database.sql('insert into page values (zeroblob(1000000))')
  database.transaction(() => {
    for (let n = 0; n < 40; n++) insert.run()
  })
  const lastStep = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  copy(database, lastStep)
  assert.equal(lastStep[0], 0)
  backup.connection.exec('rollback')
  copy(database, lastStep)
  assert.equal(lastStep[0], 1, 'nothing is left: the next commit may start over')
  const { log, checkpointed } = database.checkpoint()
  assert.equal(checkpointed, log)
})

test('row 29: while the file is locked, no more is sent than may wait for its outcome', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const limits = { keyPerMinute: 1000, recipientPerHour: 1000, daily: 1000 }
  const queueing = await startTestService(t, {
    database: { engine: 'sqlite', path },
    roles: new Set(['api']),
    settings: { limits },
  })
  const { key } = await newSender(queueing, 'other', { ...testSettings, limits })
  for (const each of [queueing.key, key])
    for (let n = 0; n < 100; n++) await queueing.post(validBody(), { authorization: `Bearer ${each}` })
  await queueing.stop()

  const greetings: (() => void)[] = []
  const taken: (() => void)[] = []
  const state = { begun: 0, open: false }
  const relay = await startSmtpServer(t, {
    onConnect: (_session, greet) => void greetings.push(greet),
    onData: (stream, _session, answer) => {
      stream.resume().once('end', () => {
        if (++state.begun <= 60 || state.open) answer(null, 'queued')
        else taken.push(() => answer(null, 'queued'))
      })
    },
  })
  const config = {
    ...queueing.config,
    roles: new Set(['worker'] as const),
    relays: [{ ...relayTo(relay.port), connectionsMax: 100 }],
  }
  const appConditions: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => void appConditions.push(line) })
  const sending = await startService(config, { onFatal: assert.fail, version: 'test', log })
  atEnd(t, () => sending.stop())
  await eventually(() => greetings.length === 100)
  const lock = new Connection(path)
  lock.connection.exec('begin immediate')
  for (const greet of greetings) greet()
  await eventually(() => appConditions.some((line) => line.includes('the store cannot write')))
  // 64 pending outcomes, and the emails begun on the other 99 connections.
  const { begun } = state
  assert.ok(begun <= 163, `${begun} sent`)
  // A submission that ends now, even while outcomes are written again, starts no other.
  const release = setInterval(() => taken.pop()?.(), 50)
  await eventually(() => taken.length === 0)
  clearInterval(release)
  assert.equal(state.begun, begun)
  state.open = true
  lock.connection.exec('rollback')
  lock.close()
  await eventually(async () => (await sending.store.readQueueGauge()).depth === 0)
  assert.equal(state.begun, 200)
})

const openAt = (path: string, more: Partial<SqliteOptions> = {}) =>
  openSqliteStore({ path, ring: newRing(), queueMax: 1_000_000, onFatal: assert.fail, ...more })

test('a list does not run on the event loop', async (t) => {
  const store = await openAt(join(temporaryFolder(t), 'postern.db'))
  atEnd(t, () => store.close())
  for (const read of [() => store.listEmails({ limit: 9 }), store.summariseQueue, store.listApps]) {
    // An answer from the thread is a message, and no message is taken between two microtasks.
    let answered = false
    const answer = read().then(() => {
      answered = true
    })
    for (let turn = 0; turn < 1_000; turn++) await Promise.resolve()
    assert.ok(!answered, 'the answer came before the event loop turned')
    await answer
  }
})

test('reads of a closed store are StoreUnavailable, on the event loop and in the thread', async (t) => {
  const store = await openAt(join(temporaryFolder(t), 'postern.db'))
  await store.close()
  for (const read of [store.readQueueGauge(), store.findApp('a'), store.listApps(), store.summariseQueue()])
    await assert.rejects(read, { name: 'StoreUnavailable', message: 'the store is closed' })
})

test('a bug in the writer keeps the stack of where it happened', async (t) => {
  const store = await openAt(join(temporaryFolder(t), 'postern.db'))
  atEnd(t, () => store.close())
  const sender = await newSubjectSender(store, 'acme')
  // The type forbids a judgement without a verdict: only a bug makes one, and this test needs a bug.
  const broken = { version: sender.app.version } as Judged
  await assert.rejects(store.enqueue({ judged: broken, keyHash: sender.keyHash }), {
    stack: /queue\/enqueue\.ts/,
  })
})

test('a database that is damaged while it is open ends the process, and nothing is written any more', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const fatal: string[] = []
  const store = await openAt(path, { onFatal: ({ message }) => void fatal.push(message) })
  atEnd(t, () => store.close())
  await newSubjectSender(store, 'acme')
  const other = new Connection(path)
  other.connection.exec('pragma wal_checkpoint(truncate)')
  other.close()
  writeFileSync(path, Buffer.alloc(statSync(path).size, 'x'), { flag: 'r+' })
  for (const message of [/malformed|not a database/, /^the store is closed$/])
    await assert.rejects(newSubjectSender(store, 'globex'), { name: 'StoreUnavailable', message })
  assert.equal(fatal.length, 1)
})

test('a command that only looks makes no database and changes no schema', async (t) => {
  const own = sqliteEnvironment(t)
  const file = join(temporaryFolder(t), 'apps.yaml')
  writeFileSync(file, '{ slug: acme, name: Acme, from: { name: Acme, address: auth@acme.test } }')
  for (const command of [
    ['apply', file, '--dry-run'],
    ['app', 'list'],
    ['email', 'list'],
    ['queue'],
    ['app', 'show', 'x'],
    ['key', 'list', 'x'],
  ]) {
    const ran = await postern(own, command)
    assert.equal(ran.code, 1, command.join(' '))
    assert.match(ran.err, /no Postern database .* yet.*postern app create/)
    assert.ok(!existsSync(pathOf(own)), command.join(' '))
  }
  const doctor = await postern({ ...own, POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' }, ['doctor'])
  assert.match(doctor.out, /^ok .*database: there is no Postern database .* yet/m)
  assert.ok(!existsSync(pathOf(own)))
  const missing = { ...own, POSTERN_DATABASE_URL: `sqlite:${pathOf(own)}/no/postern.db` }
  assert.match((await postern(missing, ['migrate'])).err, /folder of the database does not exist: mkdir -p/)
  assert.equal((await postern(own, ['apply', file, '--yes'])).code, 0)
})

test('a command that meets an older schema names the command to run, and leaves it', async (t) => {
  const own = sqliteEnvironment(t)
  await posternJson(own, ['migrate'])
  const connection = new Connection(pathOf(own))
  connection.connection.exec('delete from migration where version > 0')
  connection.close()
  for (const command of [
    ['app', 'list'],
    ['app', 'create', 'A', '--from', 'A <a@b.test>'],
  ]) {
    const ran = await postern(own, command)
    assert.equal(ran.code, 1)
    assert.match(ran.err, /run "postern migrate"|no Postern database .* yet|already exists/)
  }
})

test('"console login" lets a user of the server in, whatever names a provider gives to its people', async (t) => {
  const own = sqliteEnvironment(t)
  assert.equal((await postern(own, ['migrate'])).code, 0)
  const ring = parseKeyRing(own.POSTERN_SECRET_KEYS ?? '')
  assert.ok('ring' in ring)
  const store = await openAt(pathOf(own), { ring: ring.ring })
  const oidc = { issuer: 'https://id.example.com', subject: '1' }
  const session = { hash: hashSessionSecret(newSessionSecret()), agent: 'test', requestId: 'req_test' }
  await store.signInByOidc({ name: 'ops', role: 'reader', apps: null, oidc }, session)
  await store.close()
  for (const made of [true, false]) {
    const ran = await postern(own, ['console', 'login', '--as', 'ops'])
    assert.equal(ran.code, 0, ran.err)
    assert.match(ran.err, /ops \(server\): admin/, made ? 'a person is made' : 'and found again')
  }
  const people = await posternJson<{ name: string }[]>(own, ['person', 'list'])
  assert.deepEqual(people.map(({ name }) => name).toSorted(), ['ops', 'ops (server)'])
})

test('the lists of operators use their indexes', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  await (await openAt(path)).close()
  const connection = new Connection(path, { readOnly: true })
  atEnd(t, () => connection.close())
  const asked: string[] = []
  const target: ScriptTarget = {
    nowMs: 0,
    sql: (text) => {
      asked.push(text)
      return connection.sql(text)
    },
  }
  const planOf = (filter: Partial<EmailQuery>) => {
    performRead(target, { name: 'listEmails', args: [{ limit: 9, ...filter }] })
    const text = asked.findLast((statement) => statement.startsWith('select')) ?? ''
    const values = Array(new Set(text.match(/[?]\d+/g)).size).fill('x')
    const rows = connection.sql(`explain query plan ${text}`).all(...values)
    return rows.map(({ detail }) => detail).join('; ')
  }
  assert.match(planOf({ state: 'expired' }), /history_trouble/)
  assert.match(planOf({ app: 'app_x' as AppId, state: 'delivered' }), /history_app/)
})

test('a page passes over no mail that stays, while other mail leaves the queue between its statements', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openAt(path)
  atEnd(t, () => store.close())
  const [rare, busy] = [
    await newSubjectSender(store, 'rare'),
    await newSubjectSender(store, 'busy', { keyPerMinute: 1e6 }),
  ]
  const fill = (emails: number) =>
    Promise.all(Array.from({ length: emails }, () => store.enqueue(request(store, busy))))
  await fill(100)
  for (let n = 0; n < 5; n++) await store.enqueue(request(store, rare))
  await fill(scanMax) // the first step ends right above the five
  const [connection, other] = [new Connection(path, { readOnly: true }), new Connection(path)]
  atEnd(t, () => [connection, other].map((each) => each.close()))
  const leave = 'delete from queue where email_id in (select email_id from queue order by email_id desc limit 50)'
  // Before each statement but the first, fifty of the newest emails leave the queue.
  let asked = 0
  const target: ScriptTarget = {
    nowMs: 0,
    sql: (text) => {
      if (asked++ > 1) other.sql(leave).run()
      return connection.sql(text)
    },
  }
  const found: string[] = []
  let before: EmailQuery['before']
  do {
    const query = { key: rare.keyId, limit: 9, ...(before && { before }) }
    const page = performRead(target, { name: 'listEmails', args: [query] }) as ListPage<EmailRecord, EmailId>
    found.push(...page.items.map(({ id }) => id))
    before = page.next ?? undefined
  } while (before !== undefined)
  assert.equal(new Set(found).size, 5)
})

test('the partial indexes of both engines name the constant that makes a suspect', () => {
  for (const engine of ['sqlite', 'postgres']) {
    const file = new URL(`../../src/store/${engine}/migrations/001_initial.sql`, import.meta.url)
    const text = readFileSync(file, 'utf8')
    assert.match(text, new RegExp(`queue_ready .* lost_leases < ${suspectAfter};`))
    assert.match(text, new RegExp(`queue_suspect .* lost_leases >= ${suspectAfter};`))
  }
})

test('lists work again after the file could not be opened for a while', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 10, onFatal: assert.fail })
  await store.close()
  const reader = new ReaderThread({ path, clock: newClockOffset() })
  renameSync(path, `${path}.away`)
  await assert.rejects(reader.call({ name: 'listApps', args: [] }), { name: 'StoreUnavailable' })
  renameSync(`${path}.away`, path)
  assert.deepEqual(await reader.call({ name: 'listApps', args: [] }), [])
  await reader.close()
})

test('one process alone sends; another stands by, and takes back what the first held when that one ends', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const ring = newRing()
  const open = (at: string) => openSqliteStore({ path: at, ring, queueMax: 10, onFatal: assert.fail })
  const first = await open(path)
  symlinkSync(path, `${path}-link`)
  const second = await open(`${path}-link`)
  atEnd(t, () => second.close())
  const anything = { max: 9, perApp: 9, leases: [] }
  const sender = await newSubjectSender(first, 'a')
  await first.enqueue(request(first, sender))
  const [held] = (await first.claimDue(anything)).claims
  assert.ok(held)
  await second.enqueue(request(second, sender))
  const waiting = await second.claimDue(anything)
  assert.deepEqual([waiting.standby, waiting.claims.length], [true, 0])
  await first.close()
  const other = new Connection(path)
  atEnd(t, () => other.close())
  other.connection.exec(`create trigger obstacle before update on queue begin select raise(abort, 'not now'); end`)
  await assert.rejects(second.claimDue(anything), /not now/)
  other.connection.exec('drop trigger obstacle')
  const { claims, lost, standby } = await second.claimDue(anything)
  assert.deepEqual(
    [standby, claims.length, lost],
    [false, 2, [{ emailId: held.emailId, count: 1 }]],
    'a claim that failed took nothing back',
  )
  assert.deepEqual(
    (await second.findEmail(held.emailId))?.trail.map(({ outcome }) => outcome),
    ['lost'],
  )
  assert.deepEqual((await second.claimDue(anything)).lost, [], 'only the first claim finds all leases void')
})

test('a lock file that cannot be opened is named', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 10, onFatal: assert.fail })
  atEnd(t, () => store.close())
  mkdirSync(`${path}-worker`)
  await assert.rejects(store.claimDue({ max: 1, perApp: 1, leases: [] }), {
    name: 'StoreUnavailable',
    message: /cannot lock .*postern\.db-worker/,
  })
})

test('a lock file that somebody deleted: the leases count as lost, and the lock is taken anew', async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const store = await openSqliteStore({ path, ring: newRing(), queueMax: 10, onFatal: assert.fail })
  atEnd(t, () => store.close())
  const anything = { max: 1, perApp: 9, leases: [] }
  const { areLeasesValid } = await store.claimDue(anything)
  assert.ok(areLeasesValid())
  rmSync(`${path}-worker`)
  const again = await store.claimDue(anything)
  assert.deepEqual([again.standby, again.areLeasesValid(), areLeasesValid()], [false, true, false])
})

test('a lock file that this user cannot write is no lock', {
  skip: process.getuid?.() !== 0 && 'skipped: needs root',
}, async (t) => {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const path = join(folder, 'postern.db')
  for (const file of [path, `${path}-worker`]) writeFileSync(file, '')
  const module = fileURLToPath(new URL('../../src/store/sqlite/engine/worker-lock.ts', import.meta.url))
  const code = `const { WorkerLock } = await import('${module}')
    new WorkerLock('${path}').tryTake()`
  const nobody = 65_534
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    uid: nobody,
    gid: nobody,
    encoding: 'utf8',
  })
  assert.match(
    ran.stderr,
    /StoreUnavailable: cannot lock .*postern\.db-worker.*it belongs to user 0; give it to the service's user, with chown 65534/,
  )
})

test('a SQLite that may lose commits is refused', () => {
  for (const version of ['3.50.7', '3.51.3', '3.53.4', '4.0.0', process.versions.sqlite ?? ''])
    assert.ok(keepsCommits(version), version)
  for (const version of ['3.49.1', '3.49.9', '3.50.4', '3.50.6', '3.51.0', '3.51.2'])
    assert.ok(!keepsCommits(version), version)
})

test('a WAL is copied whole, or the copy fails: a reader may hold it back', (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const connection = new Connection(path, { isNew: true })
  atEnd(t, () => connection.close())
  connection.connection.exec('create table kept (value text); insert into kept values (1)')
  connection.checkpointAll()
  const reader = new Connection(path, { readOnly: true })
  atEnd(t, () => reader.close())
  reader.connection.exec('begin')
  reader.sql('select * from kept').get()
  connection.connection.exec('insert into kept values (2)')
  assert.throws(() => connection.checkpointAll(), { name: 'StoreUnavailable' })
  reader.connection.exec('commit')
  connection.checkpointAll()
})
