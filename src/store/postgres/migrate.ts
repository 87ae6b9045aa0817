/**
 * Brings schema and functions up to date, in one transaction under a lock that several processes
 * starting at once share: a crash leaves what was there. Only forward: a program older than the
 * schema refuses and changes nothing.
 */
import { readFileSync } from 'node:fs'
import { type KeyRing, openHashKey } from '../crypto/key-ring.ts'
import { migrationSteps, missingSteps, type Step } from '../shared/migrations.ts'
import { StoreUnavailable } from '../store.ts'
import { claimFunctions } from './claim.ts'
import type { Connection, Query } from './connection.ts'
import { writeSchema } from './context.ts'
import { enqueueFunction } from './enqueue.ts'
import { finishFunction, recordFunction } from './outcome.ts'

const folder = new URL('./migrations/', import.meta.url)
const deadlineMs = 60_000
const versionMin = 140_000

/** In an order in which each calls only those before it. */
const functions = [finishFunction, recordFunction, ...claimFunctions, enqueueFunction]

/** Applies what is missing, and opens or makes the database's hash key. Safe with several processes at once. */
export function prepare(connection: Connection, schema: string, ring: KeyRing): Promise<Buffer> {
  return connection.transaction(async (query) => {
    await requireFit(query)
    await query("select pg_advisory_xact_lock(hashtext('postern migrate ' || $1))", [schema])
    if (!(await exists(query, 'to_regnamespace', `"${schema}"`))) await query(`create schema "${schema}"`)
    const sql = writeSchema(schema)
    if (!(await exists(query, 'to_regclass', sql('postern.migration')))) {
      await query(
        sql('create table postern.migration (version integer primary key, applied_at timestamptz not null)'),
      )
    }
    const [row] = await query<{ version: number }>(
      sql('select coalesce(max(version), 0) as version from postern.migration'),
    )
    for (const step of missingSteps(migrationSteps(folder), row?.version ?? 0))
      await applyStep(query, step, sql)
    for (const { name, definition } of functions) {
      if (!(await exists(query, 'to_regproc', sql(name)))) await query(sql(definition))
    }
    return readHashKey(query, ring, sql)
  }, deadlineMs)
}

/** Made where there is none; sealed by the ring's first key. */
async function readHashKey(query: Query, ring: KeyRing, sql: (text: string) => string): Promise<Buffer> {
  const [row] = await query<{ sealed: Buffer }>(
    sql("select sealed from postern.secret where name = 'hash-key'"),
  )
  const { hashKey, reseal } = openHashKey(ring, row?.sealed)
  if (reseal !== null) {
    const text = `insert into postern.secret values ('hash-key', $1)
      on conflict (name) do update set sealed = excluded.sealed`
    await query(sql(text), [reseal])
  }
  return hashKey
}

async function applyStep(query: Query, step: Step, sql: (text: string) => string): Promise<void> {
  await query(sql(readFileSync(step.file, 'utf8')))
  await query(sql('insert into postern.migration values ($1, clock_timestamp())'), [step.version])
}

async function exists(query: Query, lookUp: string, name: string): Promise<boolean> {
  const [row] = await query<{ found: boolean }>(`select ${lookUp}($1) is not null as found`, [name])
  return row?.found === true
}

async function requireFit(query: Query): Promise<void> {
  const text = `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as pages, current_setting('server_encoding') as encoding,
    current_setting('default_transaction_isolation') as isolation`
  const [row] = await query<
    Record<'fsync' | 'pages' | 'encoding' | 'isolation', string> & { version: number }
  >(text)
  if (row === undefined || row.version < versionMin)
    throw new StoreUnavailable('the database is older than PostgreSQL 14')
  if (row.fsync !== 'on' || row.pages !== 'on')
    throw new StoreUnavailable('PostgreSQL would not be durable: it runs with fsync or full_page_writes off')
  if (row.encoding !== 'UTF8')
    throw new StoreUnavailable(`the database's encoding is ${row.encoding}; make it with UTF8`)
  if (row.isolation !== 'read committed')
    throw new StoreUnavailable('default_transaction_isolation must be "read committed" for this role')
}
