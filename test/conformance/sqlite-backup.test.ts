/** Backup and restore of a SQLite database by the command line, and the copy before a migration. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs, {
  cpSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import { formatKeyRing, newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { backUp } from '../../src/store/sqlite/files/backup.ts'
import { copyInto } from '../../src/store/sqlite/files/database-file.ts'
import { migrate, newestSchema } from '../../src/store/sqlite/files/migrate.ts'
import { restore } from '../../src/store/sqlite/files/restore.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { command, postern, posternJson, spawnServe, type Variables } from '../support/cli.ts'
import { newRing } from '../support/service.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { newSender, request, type Sender } from './subject.ts'

type Database = { path: string; env: Variables; ring: KeyRing; backup: string }

/** A database with one app and `queued` emails, closed, and a backup of it. */
async function backedUp(t: Scope, queued = 3): Promise<Database & { sender: Sender }> {
  const database = emptyDatabase(t)
  const sender = await withStore(database, async (store) => {
    const made = await newSender(store, 'acme')
    for (let n = 0; n < queued; n++) await store.enqueue(request(store, made, { to: `before${n}@example.com` }))
    return made
  })
  const ran = await postern(database.env, ['backup', database.backup])
  assert.equal(ran.code, 0, ran.err)
  return { ...database, sender }
}

function emptyDatabase(t: Scope): Database {
  const folder = temporaryFolder(t)
  const path = join(folder, 'postern.db')
  const ring = newRing()
  const env = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  return { path, env, ring, backup: join(folder, 'backup.db') }
}

async function withStore<T>({ path, ring }: Database, run: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })
  try {
    return await run(store)
  } finally {
    await store.close()
  }
}

const queueOne = (database: Database & { sender: Sender }, to: string) =>
  withStore(database, (store) => store.enqueue(request(store, database.sender, { to })))

const depth = (database: Database): Promise<number> =>
  withStore(database, async (store) => (await store.summariseQueue()).depth)

const mode = (file: string): number => statSync(file).mode & 0o777
/** The ids of all emails, apps and keys. */
function listRows(file: string): unknown[] {
  const database = new DatabaseSync(file, { readOnly: true })
  const all = 'select email_id from queue union select app_id from app union select key_id from delivery_key'
  const rows = database.prepare(`${all} order by 1`).all()
  database.close()
  return rows
}

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

test('a backup is restored: its apps, keys and queued mail are back, and the database before is kept', async (t) => {
  const database = await backedUp(t)
  assert.equal(mode(database.backup), 0o600)
  await queueOne(database, 'after@example.com')
  const ran = await postern(database.env, ['restore', database.backup])
  assert.equal(ran.code, 0, ran.err)
  assert.ok(ran.out.startsWith(`restored ${database.backup}: `), ran.out)
  assert.ok(ran.out.includes(`schema ${newestSchema()}, 1 app, 3 emails queued\n`), ran.out)
  assert.match(ran.out, /will send 3 emails/)
  assert.equal(mode(database.path), 0o600)
  const found = await posternJson<unknown[]>(database.env, ['email', 'list', '--to', 'before1@example.com'])
  assert.equal(found.length, 1)
  assert.equal(await depth(database), 3)
  assert.deepEqual(await queueOne(database, 'more@example.com').then(({ kind }) => kind), 'queued')
  const aside = /previous database is now (\S+)\./.exec(ran.out)?.[1] ?? ''
  assert.equal(await depth({ ...database, path: aside }), 4)
})

test('with --cancel-queued no email of the backup is sent, and each has its record', async (t) => {
  const database = await backedUp(t)
  await posternJson(database.env, ['restore', database.backup, '--cancel-queued'])
  assert.equal(await depth(database), 0)
  const states = await posternJson<{ state: string }[]>(database.env, ['email', 'list'])
  assert.deepEqual(
    states.map(({ state }) => state),
    ['cancelled', 'cancelled', 'cancelled'],
  )
})

test('a copy that fails leaves no file; without room or access it is refused, a damaged database is not', (t) => {
  const folder = temporaryFolder(t)
  const [damaged, part] = [join(folder, 'damaged.db'), join(folder, 'part')]
  writeFileSync(damaged, 'this is no database'.repeat(100))
  const absent = { name: 'BackupRefused', message: /^cannot write .*part: unable to open database file/ }
  assert.throws(() => copyInto(join(folder, 'absent.db'), part), absent)
  assert.throws(() => copyInto(damaged, part), { message: 'file is not a database' })
  assert.ok(!existsSync(part))
})

test('"-" writes the same database to standard output, and leaves no file', async (t) => {
  const { env, path, backup } = await backedUp(t)
  const before = readdirSync(dirname(path)).sort()
  const { status, stdout, stderr } = spawnSync(command[0] ?? '', [...command.slice(1), 'backup', '-'], {
    env: { ...env, PATH: process.env.PATH },
    maxBuffer: 1e8,
  })
  assert.equal(status, 0, String(stderr))
  assert.match(String(stderr), /3 emails queued/)
  const streamed = join(temporaryFolder(t), 'streamed.db')
  writeFileSync(streamed, stdout)
  // The first backup was noted in the database.
  assert.deepEqual(listRows(streamed), listRows(backup))
  assert.deepEqual(readdirSync(dirname(path)).sort(), before)
})

test('on a terminal, "-" is refused, and a file is written', {
  skip: process.env.POSTERN_TEST_COMMAND !== undefined && 'skipped: no terminal for another program',
}, async (t) => {
  const { env, backup } = await backedUp(t)
  Object.defineProperty(process.stdout, 'isTTY', { value: true, configurable: true })
  atEnd(t, () => Reflect.deleteProperty(process.stdout, 'isTTY'))
  const refused = await postern(env, ['backup', '-'])
  assert.equal(refused.code, 2)
  assert.match(refused.err, /redirect it to a file/)
  assert.equal((await postern(env, ['backup', `${backup}-2`])).code, 0)
})

/** The files and folders that are written to the disk, in order. */
function watchSyncs(t: TestContext): string[] {
  const synced: string[] = []
  const { fsyncSync } = fs
  t.mock.method(fs, 'fsyncSync', (descriptor: number) => {
    synced.push(readlinkSync(`/proc/self/fd/${descriptor}`))
    fsyncSync(descriptor)
  })
  syncBuiltinESMExports()
  atEnd(t, () => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return synced
}

test('a restored database, the name of the old one and its own are on disk when it is made', async (t) => {
  const { backup, path, ring } = await backedUp(t)
  const synced = watchSyncs(t)
  await restore({ path, file: backup, ring, cancelQueued: false, nowMs: Date.now() })
  const [part, ...folders] = synced.slice(-3)
  assert.ok(part?.startsWith(`${path}.part-`), synced.join())
  assert.deepEqual(folders, [dirname(path), dirname(path)])
})

test('a backup, and then its name in the folder, are on disk when it is made', async (t) => {
  const { backup, path } = await backedUp(t)
  const synced = watchSyncs(t)
  const file = `${backup}-2`
  backUp(path, file, Date.now())
  assert.equal(synced.length, 2)
  assert.ok(synced[0]?.startsWith(`${file}.part-`), synced.join())
  assert.equal(synced[1], dirname(file))
})

test('a backup never takes the place of a file, and needs a folder', async (t) => {
  const { env, backup, path } = await backedUp(t)
  const before = digest(backup)
  const again = await postern(env, ['backup', backup])
  assert.equal(again.code, 1)
  assert.match(again.err, /exists: name another file/)
  assert.equal(digest(backup), before)
  const nowhere = await postern(env, ['backup', join(path, 'nowhere/file.db')])
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.err, /there is no folder/)
})

/** Each makes a restore wrong, and gives the file to restore and the variables to do it with. */
const wrongs: Record<string, { error: RegExp; make: (database: Database, t: TestContext) => Wrong }> = {
  'a file that is not there': {
    error: /cannot read the backup: ENOENT/,
    make: ({ path }) => ({ file: `${path}.nowhere` }),
  },
  'the database itself': {
    error: /is the database itself: name a backup/,
    make: ({ path }) => ({ file: path }),
  },
  'a copied database with its WAL': {
    error: /backup\.db-wal is next to .* Make a backup of it first: POSTERN_DATABASE_URL=sqlite:\S+ postern backup/,
    make: ({ backup }) => {
      writeFileSync(`${backup}-wal`, 'anything')
      return { file: backup }
    },
  },
  'a ring without the key': {
    error: /the key ring lacks the key "test": POSTERN_SECRET_KEYS must hold/,
    make: ({ backup }) => ({ file: backup, env: { POSTERN_SECRET_KEYS: newSecretKey('other') } }),
  },
  'a ring with another secret under the id': {
    error: /a key "test" that is not the key "test" of this database/,
    make: ({ backup }) => ({ file: backup, env: { POSTERN_SECRET_KEYS: newSecretKey('test') } }),
  },
  'a newer schema': {
    error: /schema 999, and this Postern knows schema \d+: run a newer Postern, or restore a backup/,
    make: ({ backup }) => {
      const copy = new DatabaseSync(backup)
      copy.exec('insert into migration values (999, 0)')
      copy.close()
      return { file: backup }
    },
  },
  'a torn file': {
    error: /is not a whole Postern database: .* Use another backup/,
    make: ({ backup }) => {
      truncateSync(backup, statSync(backup).size - 8192)
      return { file: backup }
    },
  },
  'a file with a page overwritten': {
    error: /is not a whole Postern database: .* Use another backup/,
    make: ({ backup }) => {
      const bytes = readFileSync(backup)
      bytes.fill(0x55, 3 * 4096, 4 * 4096)
      writeFileSync(backup, bytes)
      return { file: backup }
    },
  },
  'a text': {
    error: /is not a whole Postern database: file is not a database/,
    make: ({ backup }) => {
      writeFileSync(backup, 'not a database '.repeat(1000))
      return { file: backup }
    },
  },
  'a database of another program': {
    error: /is not a whole Postern database: no such table/,
    make: ({ backup }) => {
      rmSync(backup)
      const other = new DatabaseSync(backup)
      other.exec('create table notes (text)')
      other.close()
      return { file: backup }
    },
  },
  'a database that a process has open': {
    error: /a process has the database \S+ open: stop the service/,
    make: ({ path, backup }, t) => {
      const reader = new DatabaseSync(path, { readOnly: true })
      reader.prepare('select * from app').all()
      atEnd(t, () => reader.close())
      return { file: backup }
    },
  },
}
type Wrong = { file: string; env?: Variables }

for (const [what, { error, make }] of Object.entries(wrongs)) {
  test(`refused, with the database as it was: ${what}`, async (t) => {
    const database = await backedUp(t)
    await queueOne(database, 'after@example.com')
    const { file, env } = make(database, t)
    const ran = await postern({ ...database.env, ...env }, ['restore', file])
    assert.equal(ran.code, 1, ran.out)
    assert.match(ran.err, error)
    assert.equal(await depth(database), 4)
    const left = readdirSync(dirname(database.path)).filter((name) => /part|before-restore/.test(name))
    assert.deepEqual(left, [])
  })
}

test('refused while the service runs, and possible once it has stopped', async (t) => {
  const database = await backedUp(t)
  const relay = {
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_CONSOLE_LISTEN: 'off',
  }
  const { child } = await spawnServe(t, { ...database.env, ...relay, POSTERN_OPS_LISTEN: '127.0.0.1:0' })
  const ran = await postern(database.env, ['restore', database.backup])
  assert.match(ran.err, /stop the service/)
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))
  await posternJson(database.env, ['restore', database.backup])
  assert.equal(await depth(database), 3)
})

for (const suffix of ['-wal', '-journal']) {
  test(`refused: a ${suffix.slice(1)} is left of a database that was deleted, and may hold mail`, async (t) => {
    const database = await backedUp(t)
    const { path } = database
    rmSync(path)
    writeFileSync(path + suffix, 'mail')
    const ran = await postern(database.env, ['restore', database.backup])
    assert.equal(ran.code, 1)
    assert.match(ran.err, /is left over from a database that was deleted or moved, and may hold mail: stop any process/)
    assert.ok(!existsSync(path))
    rmSync(path + suffix)
    await posternJson(database.env, ['restore', database.backup])
    assert.equal(await depth(database), 3)
  })
}

test('refused: the service runs, although its database was deleted', async (t) => {
  const database = await backedUp(t)
  const relay = {
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_CONSOLE_LISTEN: 'off',
  }
  await spawnServe(t, { ...database.env, ...relay, POSTERN_OPS_LISTEN: '127.0.0.1:0' })
  for (const suffix of ['', '-wal', '-shm']) rmSync(database.path + suffix, { force: true })
  const ran = await postern(database.env, ['restore', database.backup])
  assert.match(ran.err, /a process has the database \S+ open: stop the service/)
})

test('refused: a symbolic link that leads nowhere, as of a disk that is not mounted', async (t) => {
  const database = await backedUp(t)
  rmSync(database.path)
  symlinkSync(join(dirname(database.path), 'nowhere/postern.db'), database.path)
  const ran = await postern(database.env, ['restore', database.backup])
  assert.match(ran.err, /leads nowhere: is its disk mounted/)
})

test('the way back: the database that a restore has put aside is restored', async (t) => {
  const database = await backedUp(t)
  await queueOne(database, 'after@example.com')
  const { previous } = await posternJson<{ previous: string }>(database.env, ['restore', database.backup])
  await posternJson(database.env, ['restore', previous])
  assert.equal(await depth(database), 4)
})

test('a backup in WAL mode is restored with its mail cancelled', async (t) => {
  const database = await backedUp(t)
  const copy = new Connection(database.backup) // turns on the WAL, as in a copy of a stopped database
  copy.close()
  await posternJson(database.env, ['restore', database.backup, '--cancel-queued'])
  assert.equal(await depth(database), 0)
})

test('"-" restores from standard input', async (t) => {
  const database = await backedUp(t)
  const { status, stderr } = spawnSync(command[0] ?? '', [...command.slice(1), 'restore', '-'], {
    env: { ...database.env, PATH: process.env.PATH },
    input: readFileSync(database.backup),
  })
  assert.equal(status, 0, String(stderr))
  assert.equal(await depth(database), 3)
})

test('a damaged database is replaced too', async (t) => {
  const database = await backedUp(t)
  writeFileSync(database.path, 'overwritten '.repeat(10_000))
  const { previous } = await posternJson<{ previous: string }>(database.env, ['restore', database.backup])
  assert.match(readFileSync(previous, 'utf8'), /^overwritten/)
  assert.equal(await depth(database), 3)
})

test('mail that a removed key of the ring sealed is named', async (t) => {
  const database = emptyDatabase(t)
  await withStore(database, async (store) => {
    await store.enqueue(request(store, await newSender(store, 'acme')))
  })
  const [next] = newRing('next')
  const both = { ...database.env, POSTERN_SECRET_KEYS: formatKeyRing([next, ...database.ring]) }
  await posternJson(both, ['migrate']) // seals the hash key with the new first key
  await posternJson(both, ['backup', database.backup])
  const ran = await postern({ ...both, POSTERN_SECRET_KEYS: formatKeyRing([next]) }, ['restore', database.backup])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /POSTERN_SECRET_KEYS lacks the key "test": mail sealed with a missing key waits/)
})

/** The steps of this program and one more. */
function nextSchema(t: Scope): URL {
  const steps = pathToFileURL(`${join(temporaryFolder(t), 'steps')}/`)
  cpSync(new URL('../../src/store/sqlite/migrations/', import.meta.url), steps, { recursive: true })
  const name = `${String(newestSchema() + 1).padStart(3, '0')}_next.sql`
  writeFileSync(new URL(name, steps), 'alter table app add column note text')
  return steps
}

test('before a migration, a database with apps is copied; the copy has the schema before', async (t) => {
  const database = await backedUp(t)
  const steps = nextSchema(t)
  const copy = `${database.path}.schema-${newestSchema()}`
  writeFileSync(copy, 'left by an earlier attempt')
  const connection = new Connection(database.path)
  migrate(connection, { path: database.path, use: 'migrate', nowMs: Date.now(), steps })
  connection.close()
  const newer = await postern(database.env, ['app', 'list'])
  assert.match(newer.err, new RegExp(`schema ${newestSchema() + 1}, and this Postern knows schema ${newestSchema()}:`))
  await posternJson(database.env, ['restore', copy])
  assert.equal(await depth(database), 3)
})

test('a new database is migrated without a copy', async (t) => {
  const { env, path } = emptyDatabase(t)
  await posternJson(env, ['migrate'])
  assert.ok(!existsSync(`${path}.schema-0`))
  assert.deepEqual(
    readdirSync(dirname(path)).filter((name) => name.includes('schema')),
    [],
  )
})

test('two restores one after another keep both databases that they replaced', async (t) => {
  const database = await backedUp(t)
  await queueOne(database, 'after@example.com')
  const restore = () => posternJson<{ previous: string }>(database.env, ['restore', database.backup])
  const [first, second] = [await restore(), await restore()]
  assert.equal(await depth({ ...database, path: first.previous }), 4)
  assert.equal(await depth({ ...database, path: second.previous }), 3)
})

test('a symbolic link keeps leading to the database', async (t) => {
  const database = await backedUp(t)
  const link = join(dirname(database.path), 'link.db')
  symlinkSync(database.path, link)
  await queueOne(database, 'after@example.com')
  const env = { ...database.env, POSTERN_DATABASE_URL: `sqlite:${link}` }
  const { previous } = await posternJson<{ previous: string }>(env, ['restore', database.backup])
  assert.ok(lstatSync(link).isSymbolicLink())
  assert.equal(await depth(database), 3)
  assert.equal(await depth({ ...database, path: previous }), 4)
})

test('a symbolic link to a copied database does not hide its WAL', async (t) => {
  const database = await backedUp(t)
  const link = join(dirname(database.path), 'latest.db')
  symlinkSync(database.backup, link)
  writeFileSync(`${database.backup}-wal`, 'anything')
  const ran = await postern(database.env, ['restore', link])
  assert.match(ran.err, /backup\.db-wal is next to/)
})

test('a copy before a migration that was killed does not stop the next start', async (t) => {
  const database = await backedUp(t)
  const part = `${database.path}.schema-${newestSchema()}.part`
  for (const suffix of ['', '-wal', '-journal']) writeFileSync(part + suffix, 'left')
  const connection = new Connection(database.path)
  const steps = nextSchema(t)
  migrate(connection, { path: database.path, use: 'migrate', nowMs: Date.now(), steps })
  connection.close()
  assert.deepEqual(
    readdirSync(dirname(database.path)).filter((name) => name.includes('.part')),
    [],
  )
})
