/**
 * Brings schema and functions up to date, in one transaction under a lock that several starting
 * processes share: a crash leaves the old schema. Steps only go forward.
 */
import { readFileSync } from 'node:fs'
import { type KeyRing, type OpenedSecrets, openSecrets, type StoredSecret } from '../../crypto/key-ring.ts'
import { migrationSteps, newestVersion, requireColumns, type SchemaUse, stepsToApply } from '../../shared/migrations.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Connection, Query } from '../engine/connection.ts'
import { quoteSchema } from '../engine/context.ts'
import { claimFunctions } from '../queue/claim.ts'
import { enqueueFunctions } from '../queue/enqueue.ts'
import { outcomeFunctions } from '../queue/outcome.ts'

const folder = new URL('../migrations/', import.meta.url)
const deadlineMs = 60_000
const versionMin = 140_000

/** The version of the schema of an open store. */
export const newestSchema = (): number => newestVersion(migrationSteps(folder))

/** In an order in which each calls only functions before it. */
const functions = [...outcomeFunctions, ...claimFunctions, ...enqueueFunctions]

export type PrepareOptions = {
  readonly schema: string
  readonly ring: KeyRing
  readonly schemaUse: SchemaUse
}

/** Migrates as far as `schemaUse` allows, and makes or opens the database's hash key. */
export function prepare(connection: Connection, options: PrepareOptions): Promise<OpenedSecrets> {
  return connection.transaction(async (query) => {
    await makeSchema(query, options)
    return readSecrets(query, options)
  }, deadlineMs)
}

/** Leaves the schema on the search path. Returns the version that the schema had, 0 if there was none. */
export async function makeSchema(query: Query, options: Pick<PrepareOptions, 'schema' | 'schemaUse'>): Promise<number> {
  const schema = quoteSchema(options.schema)
  await requireSuitableServer(query)
  const version = await lockedVersion(query, schema)
  const known = migrationSteps(folder)
  const steps = stepsToApply(known, version, options.schemaUse)
  const columns = await query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns where table_schema = $1`,
    [options.schema],
  )
  requireColumns(
    known.filter((step) => !steps.includes(step)),
    new Set(columns.map(({ name }) => name)),
  )
  if (steps.length > 0) {
    await query(`create schema if not exists ${schema}`)
    await query(`set local search_path = ${schema}, pg_temp`)
    await query('create table if not exists migration (version integer primary key, applied_at timestamptz not null)')
  }
  for (const step of steps) {
    await query(readFileSync(step.file, 'utf8'))
    await query('insert into migration (version, applied_at) values ($1, clock_timestamp())', [step.version])
  }
  await query(`set local search_path = ${schema}, pg_temp`)
  for (const { name, define } of functions) {
    if (!(await exists(query, 'to_regproc', `${schema}.${name}`))) await query(define(schema))
  }
  return version
}

/** The version of the schema, 0 if there is none, under the lock that migrations hold. */
async function lockedVersion(query: Query, schema: string): Promise<number> {
  await query("select pg_advisory_xact_lock(hashtext('postern migrate ' || $1))", [schema])
  if (!(await exists(query, 'to_regclass', `${schema}.migration`))) return 0
  const [row] = await query<{ version: number }>(`select coalesce(max(version), 0) as version from ${schema}.migration`)
  return row?.version ?? 0
}

/** A new hash key if there is none; sealed by the ring's first key. */
async function readSecrets(query: Query, { ring, schemaUse }: PrepareOptions): Promise<OpenedSecrets> {
  const opened = openSecrets(ring, await query<StoredSecret>('select name, sealed from secret'))
  const text = `insert into secret (name, sealed) values ($1, $2)
    on conflict (name) do update set sealed = excluded.sealed`
  if (schemaUse !== 'open') for (const { name, sealed } of opened.changed) await query(text, [name, sealed])
  return opened
}

async function exists(query: Query, lookUp: string, name: string): Promise<boolean> {
  const [row] = await query<{ found: boolean }>(`select ${lookUp}($1) is not null as found`, [name])
  return row?.found === true
}

async function requireSuitableServer(query: Query): Promise<void> {
  const text = `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as pages, current_setting('server_encoding') as encoding,
    current_setting('default_transaction_isolation') as isolation`
  const [row] = await query<Record<'fsync' | 'pages' | 'encoding' | 'isolation', string> & { version: number }>(text)
  if (row === undefined || row.version < versionMin)
    throw new StoreUnavailable('the database is older than PostgreSQL 14')
  if (row.fsync !== 'on' || row.pages !== 'on')
    throw new StoreUnavailable('PostgreSQL would not be durable: it runs with fsync or full_page_writes off')
  if (row.encoding !== 'UTF8')
    throw new StoreUnavailable(`the database's encoding is ${row.encoding}; make it with UTF8`)
  if (row.isolation !== 'read committed')
    throw new StoreUnavailable('default_transaction_isolation must be "read committed" for this role')
}
