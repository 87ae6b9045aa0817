/**
 * Brings the schema up to date. Each step is one transaction together with its version row, so a
 * crash leaves whole steps and the next start continues. Steps only go forward.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { dirname } from 'node:path'
import { migrationSteps, newestVersion, requireColumns, type SchemaUse, stepsToApply } from '../../shared/migrations.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Connection } from '../engine/connection.ts'
import { backUpBeforeMigration } from './backup.ts'
import { findLeftover, resolveLink, sizeOf } from './database-file.ts'

const ownSteps = new URL('../migrations/', import.meta.url)

/** The version of the schema of an open store. */
export const newestSchema = (): number => newestVersion(migrationSteps(ownSteps))

/**
 * Throws if the file cannot be made, or if there is none and `use` does not allow to make one. Throws too if
 * files beside it show that the database was moved or deleted, or is another one: SQLite would drop the WAL
 * of a missing database, and write that of another one into this.
 */
export function requireFile(given: string, use: SchemaUse): void {
  const path = resolveLink(given)
  const [wal, lock] = [`${path}-wal`, `${path}-worker`]
  const hadLock = existsSync(lock) // asked first: another process may be making both
  const left = findLeftoverAfterStarts(path)
  const size = sizeOf(path)
  refuseLeftover(path, left ?? (size === null && hadLock ? lock : null))
  if (size && sizeOf(wal) && !isInWalMode(path))
    throw new StoreUnavailable(
      `${path} is a backup that was copied here, and ${wal} belongs to the database before it: use "postern restore", or move ${wal} away`,
    )
  if (size !== null) return
  const folder = dirname(path)
  if (!existsSync(folder)) throw new StoreUnavailable(`the folder of the database does not exist: mkdir -p ${folder}`)
  stepsToApply(migrationSteps(ownSteps), 0, use, `at ${path}`)
}

function refuseLeftover(path: string, left: string | null): void {
  if (left === null) return
  throw new StoreUnavailable(
    `there is no database at ${path}, but ${left} shows that there was one: put the database back (is its disk mounted?), or restore a backup. To start with a new one, move ${left} away`,
  )
}

const startMs = 2000
const pauseMs = 20

/** While another process makes the database, it is empty and has a journal. */
function findLeftoverAfterStarts(path: string): string | null {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const endMs = performance.now() + startMs
  for (;;) {
    const left = findLeftover(path)
    if (left !== `${path}-journal` || performance.now() > endMs) return left
    Atomics.wait(pause, 0, 0, pauseMs)
  }
}

/**
 * Whether the header says so (https://www.sqlite.org/fileformat2.html, offset 18). A database of Postern's
 * always is; a backup is not.
 */
function isInWalMode(path: string): boolean {
  const descriptor = openSync(path, 'r')
  try {
    const version = Buffer.alloc(1)
    readSync(descriptor, version, 0, 1, 18)
    return version[0] === 2
  } finally {
    closeSync(descriptor)
  }
}

/** Throws if the schema is newer than this program. */
export const requireKnownSchema = (version: number): void => {
  stepsToApply(migrationSteps(ownSteps), version, 'migrate')
}

/** Throws if the schema is older or newer than this program's. */
export const requireCurrentSchema = (version: number): void => {
  stepsToApply(migrationSteps(ownSteps), version, 'open')
}

export type MigrateOptions = {
  readonly path: string
  readonly use: SchemaUse
  readonly nowMs: number
  /** The folder of the steps; usually this program's. It ends in a slash. */
  readonly steps?: URL
}

/**
 * Applies the missing steps as far as `use` allows. Safe with several processes at once. A database that
 * holds apps is first copied to `<path>.schema-<version>`.
 */
export function migrate(connection: Connection, { path, use, nowMs, steps = ownSteps }: MigrateOptions): void {
  const version = schemaVersion(connection)
  const known = migrationSteps(steps)
  const missing = stepsToApply(known, version, use)
  requireColumns(
    known.filter((step) => !missing.includes(step)),
    listColumns(connection),
  )
  if (missing.length === 0) return
  connection.connection.exec(
    'create table if not exists migration (version integer primary key, applied_at integer not null) strict',
  )
  for (const step of missing) {
    connection.transaction(() => {
      if (schemaVersion(connection) >= step.version) return // another process was faster
      if (step === missing[0] && version > 0 && holdsApps(connection)) backUpBeforeMigration(path, version, nowMs)
      connection.connection.exec(readFileSync(step.file, 'utf8'))
      connection.sql('insert into migration (version, applied_at) values (?, ?)').run(step.version, nowMs)
    })
  }
}

const listColumns = (connection: Connection): ReadonlySet<string> => {
  const text = `select made.name || '.' || info.name as name
    from sqlite_schema made join pragma_table_info(made.name) info where made.type = 'table'`
  return new Set(
    connection
      .sql(text)
      .all()
      .map(({ name }) => name as string),
  )
}

const holdsApps = (connection: Connection): boolean => connection.sql('select 1 from app limit 1').get() !== undefined

/** 0 if there is no schema yet. */
function schemaVersion(connection: Connection): number {
  const table = connection.sql("select 1 from sqlite_schema where type = 'table' and name = 'migration'").get()
  if (table === undefined) return 0
  return Number(connection.sql('select coalesce(max(version), 0) as version from migration').get()?.version)
}
