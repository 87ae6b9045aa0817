/** `postern export all` and `import`: from one engine to the other and back, with every kind of row. */
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatKeyRing } from '../../src/store/crypto/key-ring.ts'
import { archivedTables } from '../../src/store/shared/archive.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { postern, posternJson, type Variables } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { dumpTables } from '../support/dump.ts'
import { postgresUrl } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { stuff } from './stuffed-rows.ts'

const rowsOfEach = 60

/** The tables of either engine that an archive lacks, and why. */
const tablesLeftOut: Readonly<Record<string, string>> = {
  ...{ queue: 'two installations would both send it', queue_depth: 'counts the queue' },
  idempotency: 'the emails of some keys are in the queue',
  inbox_email: 'kept for an hour',
  ...{ session: 'a session ends with its installation', sign_in_code: 'as sessions', nonce: 'as sessions' },
  ...{ rate_bucket: 'refills within a day', bucket_journal: 'as rate_bucket', strike_count: 'counts a few minutes' },
  ...{ audit_day: 'counts a day', node: 'each process writes its own', probe: 'holds nothing' },
  ...{ scan: 'positions in tables', app_lock: 'made from the apps', migration: 'made with the schema' },
}

/** A database on SQLite with rows in every table, and an empty place for another one. */
async function newPlace(t: TestContext) {
  const folder = temporaryFolder(t)
  const ring = newRing()
  const path = join(folder, 'postern.db')
  await (await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })).close()
  const connection = new Connection(path)
  stuff(connection, rowsOfEach)
  connection.sql("insert into report_source (source, heard_at) values ('mail', 1)").run()
  connection.close()
  const secrets = { POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  const at = (name: string): Variables => ({ ...secrets, POSTERN_DATABASE_URL: `sqlite:${join(folder, name)}` })
  return { folder, at, full: at('postern.db'), file: (name: string) => join(folder, name) }
}

const exportAll = (env: Variables, file: string, ...more: string[]) =>
  posternJson<{ rows: Record<string, number>; queued: number }>(env, ['export', 'all', '--to', file, ...more])

type Line = { readonly table: string; readonly row: Record<string, unknown> }
const isJsonText = (value: unknown): value is string => typeof value === 'string' && /^[[{]/.test(value)

/** The rows of an archive without the entries that exports add, in any order, with JSON as values. */
function readRows(file: string): Line[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n').slice(1, -1)
  const rows = lines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ row }) => row.action !== 'list.export')
    .map(({ table, row }) => {
      const values = Object.entries(row).map(([name, value]) => [name, isJsonText(value) ? JSON.parse(value) : value])
      return { table, row: Object.fromEntries(values.toSorted()) }
    })
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

test('every row goes from SQLite to PostgreSQL and back unchanged, and every table is in an archive or left out for a reason', async (t) => {
  const { at, file, full } = await newPlace(t)
  const url = await postgresUrl(t)
  const steps = [full, { ...full, POSTERN_DATABASE_URL: url }, at('back.db')]
  for (const [n, env] of steps.entries()) {
    if (n > 0) assert.equal((await postern(env, ['import', file(`${n - 1}.jsonl`)])).code, 0)
    const { rows } = await exportAll(env, file(`${n}.jsonl`), '--secrets')
    for (const table of archivedTables) assert.ok((rows[table] ?? 0) > 0, table)
    const tables = (await dumpTables(databaseAt(`${env.POSTERN_DATABASE_URL}`))).keys()
    const unknown = [...tables].filter((name) => !archivedTables.some((table) => table === name))
    assert.deepEqual(
      unknown.filter((name) => tablesLeftOut[name] === undefined),
      [],
    )
    if (n > 0) assert.deepEqual(readRows(file(`${n}.jsonl`)), readRows(file('0.jsonl')))
  }
  assert.equal(statSync(file('0.jsonl')).mode & 0o777, 0o600)
})

test('without secrets, an archive has nothing that is encrypted or gives access, and cannot be imported', async (t) => {
  const { at, file, full } = await newPlace(t)
  const { queued, rows } = await exportAll(full, file('plain.jsonl'))
  assert.ok(queued > 0 && rows.secret === undefined)
  const text = readFileSync(file('plain.jsonl'), 'utf8')
  assert.doesNotMatch(text, /sealed|_hash|base64/)
  const ran = await postern(at('new.db'), ['import', file('plain.jsonl')])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /the archive has no secrets, .* export again with --secrets/)
})

/** Leaves a column that may be null out of the second delivery key alone. */
function dropColumn() {
  let keys = 0
  return (line: string) =>
    line.includes('"table":"delivery_key"') && ++keys === 2 ? line.replace(/"expires_at":[^,}]*,/, '') : line
}

test('an archive that is cut off, changed, of another schema or of another ring is refused, and makes no database', async (t) => {
  const { at, file, full } = await newPlace(t)
  await exportAll(full, file('whole.jsonl'), '--secrets')
  const lines = readFileSync(file('whole.jsonl'), 'utf8').trim().split('\n')
  const [head = '', first = '', ...rest] = lines
  const end = lines.at(-1) ?? ''
  const otherRing = { POSTERN_SECRET_KEYS: formatKeyRing(newRing()) }
  const cases: [string, readonly string[], RegExp, Variables?][] = [
    ['cut off', lines.slice(0, -1), /the archive is cut off/],
    ['a row is missing', [head, ...rest], /rows do not match the last line/],
    ['a row after the end', [...lines, first], /rows do not match the last line/],
    ['no JSON', [head, '{', ...rest], /line 2 of the archive is not a JSON object/],
    ['a table that no archive has', [head, '{"table":"queue","row":{}}', end], /line 2 of the archive is not a row/],
    ['no row', [head, '{"table":"app","row":[]}', end], /line 2 of the archive is not a row/],
    ['other columns', [head, '{"table":"app","row":{"app_id":"a","x":1}}', end], /the columns of app do not match/],
    [
      'another type',
      [head, first.replace(/"created_at":\d+/, '"created_at":"x"'), end],
      /a row of app cannot be imported/,
    ],
    [
      'another schema',
      [head.replace('"schema":5', '"schema":4'), ...lines.slice(1)],
      /has schema 4, and .* schema 5: import it with version/,
    ],
    ['no head', lines.slice(1), /not an archive of Postern, or it was written by a newer version/],
    ['a long line', [head, ' '.repeat(5 * 1024 * 1024)], /a line of the archive is too long/],
    ['counts that are none', [head, '{"rows":null}'], /rows do not match/],
    ['a later row without a column', lines.map(dropColumn()), /the columns of delivery_key do not match/],
    ['no bytes', [head, '{"table":"secret","row":{"name":"key x","sealed":null}}', end], /a row of secret cannot be/],
    ['no hash key', [head, '{"rows":{}}'], /the archive lacks the hash key/],
    ['nothing', [], /line 1 of the archive is not a JSON object/],
    ['another ring', lines, /POSTERN_SECRET_KEYS has a key "test" that is not the key/, otherRing],
  ]
  for (const [name, content, expected, more] of cases) {
    writeFileSync(file('changed.jsonl'), content.map((line) => `${line}\n`).join(''))
    for (const url of [at('new.db').POSTERN_DATABASE_URL, await postgresUrl(t)]) {
      const ran = await postern({ ...full, ...more, POSTERN_DATABASE_URL: `${url}` }, ['import', file('changed.jsonl')])
      assert.equal(ran.code, 1, name)
      assert.match(ran.err, expected, name)
      assert.doesNotMatch(ran.err, /\n {4}at /, name)
    }
  }
  const ran = await postern(at('new.db'), ['app', 'list'])
  assert.match(ran.err, /there is no Postern database/)
})

test('what an export and an import cannot do is said before anything is written', async (t) => {
  const { at, file, full } = await newPlace(t)
  const refused = async (env: Variables, args: readonly string[], expected: RegExp) =>
    assert.match((await postern(env, args)).err, expected)
  await refused(full, ['export', 'all'], /name the file: postern export all --to FILE/)
  await refused(full, ['export', 'all', '--to', file('a'), '--since', '3d'], /"export all" has no filters/)
  await refused(full, ['export', 'emails', '--secrets'], /--to and --secrets are for "export all"/)
  await refused(full, ['export', 'all', '--to', file('postern.db')], /exists: name another file/)
  await refused(full, ['export', 'all', '--to', file('none/a')], /there is no folder/)
  await refused(at('new.db'), ['import', file('none')], /cannot read the archive: ENOENT/)
  await refused(at('new.db'), ['import', file('.')], /cannot read the archive: .* is not a file/)
  await exportAll(full, file('a.jsonl'), '--secrets')
  await refused(full, ['import', file('a.jsonl')], /already exists: an import needs a new database/)
})
