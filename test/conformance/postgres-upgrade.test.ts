/** The databases of earlier versions (`test/conformance/sample.ts`) are upgraded, and keep every row. */
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseKeyRing } from '../../src/store/crypto/key-ring.ts'
import { migrationSteps } from '../../src/store/shared/migrations.ts'
import { postern, type Variables } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { dumpTables } from '../support/dump.ts'
import { openClient, postgresUrl, schemaOf } from '../support/postgres.ts'
import { relayTo, send, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { readSample, type Sample } from './sample.ts'

const releases = fileURLToPath(new URL('../../releases/', import.meta.url))
const versions = globSync('*.sample.gz', { cwd: releases }).map((file) => basename(file, '.sample.gz'))
assert.ok(versions.length > 0)
const steps = migrationSteps(new URL('../../src/store/postgres/migrations/', import.meta.url))

function restoreSqlite(t: TestContext, { sqlite }: Sample): string {
  const path = join(temporaryFolder(t), 'postern.db')
  writeFileSync(path, Buffer.from(sqlite, 'base64'))
  return `sqlite:${path}`
}

/** The steps up to the sample's schema make what its version made: after a release they never change. */
async function restorePostgres(t: TestContext, { postgres }: Sample): Promise<string> {
  const url = await postgresUrl(t)
  const client = await openClient(t, url)
  const run = (text: string, values: unknown[] = []) => client.query(text, values)
  const rowsOf = (table: string) => JSON.stringify(postgres[table])
  await run(`create schema ${schemaOf(url)}; set search_path = ${schemaOf(url)}, pg_temp`)
  await run('create table migration (version integer primary key, applied_at timestamptz not null)')
  const applied = (postgres.migration ?? []).map((row) => (row as { version: number }).version)
  for (const { file, version } of steps) if (applied.includes(version)) await run(readFileSync(file, 'utf8'))
  await run('set session_replication_role = replica') // the tables in any order
  for (const table of Object.keys(postgres)) {
    const columns = await run(
      `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
       where table_schema = $1 and table_name = $2 and is_generated = 'NEVER'`,
      [schemaOf(url), table],
    )
    const { names } = columns.rows[0] as { names: string }
    await run(`delete from ${table}`)
    await run(
      `insert into ${table} (${names})
       select ${names} from jsonb_populate_recordset(null::${table}, $1)`,
      [rowsOf(table)],
    )
  }
  return url
}

function ringOf({ ring }: Sample) {
  const parsed = parseKeyRing(ring)
  assert.ok('ring' in parsed)
  return parsed.ring
}

type Rows = readonly Readonly<Record<string, unknown>>[]

async function readRows(url: string): Promise<ReadonlyMap<string, Rows>> {
  const tables = await dumpTables(databaseAt(url))
  const parse = (text: string): Rows =>
    text.startsWith('[')
      ? JSON.parse(text)
      : text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  return new Map([...tables].map(([table, text]) => [table, parse(text)]))
}

/** The columns and tables of before have what they had; a step may add others. */
function assertKept(before: ReadonlyMap<string, Rows>, after: ReadonlyMap<string, Rows>): void {
  for (const [table, rows] of before) {
    if (table === 'migration') continue
    const names = Object.keys(rows[0] ?? {})
    const texts = (all: Rows = []) => all.map((row) => JSON.stringify(names.map((name) => row[name]))).toSorted()
    assert.deepEqual(texts(after.get(table)), texts(rows), table)
  }
}

for (const [engine, restore] of [
  ['SQLite', restoreSqlite],
  ['PostgreSQL', restorePostgres],
] as const)
  for (const version of versions)
    test(`${engine}: the database of ${version} is upgraded; its emails are sent, and its key works`, async (t) => {
      const sample = readSample(version)
      const url = await restore(t, sample)
      const env: Variables = { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEYS: sample.ring }
      const before = await readRows(url)
      const migrated = await postern(env, ['migrate'])
      assert.equal(migrated.code, 0, migrated.err)
      assertKept(before, await readRows(url))
      const relay = await startSmtpServer(t)
      const service = await startTestService(t, {
        ...{ database: databaseAt(url), ring: ringOf(sample), nowMs: sample.nowMs },
        ...{ relays: [relayTo(relay.port)], roles: new Set(['api', 'worker']), slug: 'later' },
      })
      const body = JSON.stringify(validBody({ to: 'new@example.com' }, sample.nowMs))
      const answer = await send(service.apiUrl, body, { authorization: `Bearer ${sample.key}` })
      assert.equal(answer.status, 202)
      const awaited = [...sample.recipients, 'new@example.com'].toSorted()
      await eventually(() => relay.received.length >= awaited.length)
      assert.deepEqual(relay.received.flatMap(({ to }) => to).toSorted(), awaited)
    })
