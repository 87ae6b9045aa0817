/** Backup, restore, copy, export and import of the configured database. They open no store. */
import { randomUUID } from 'node:crypto'
import { createReadStream, rmSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/parse-config.ts'
import { isHashKey, type KeyRing, openSecrets, type StoredSecret } from '../store/crypto/key-ring.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import type { DatabaseFacts, Restored } from '../store/database-facts.ts'
import { exportRows } from '../store/postgres/schema/export.ts'
import { importRows } from '../store/postgres/schema/import.ts'
import { type ArchivedCounts, readArchive, writeArchive } from '../store/shared/archive.ts'
import { BackupRefused } from '../store/shared/files.ts'
import type { CopiedRows, CopyReport } from '../store/shared/table-copy.ts'
import { backUp } from '../store/sqlite/files/backup.ts'
import { exportDatabase, readSnapshot } from '../store/sqlite/files/export.ts'
import { importDatabase } from '../store/sqlite/files/import.ts'
import { newestSchema } from '../store/sqlite/files/migrate.ts' // both engines have the same
import { restore } from '../store/sqlite/files/restore.ts'
import { requireOwner } from './store.ts'

/** The path of the SQLite database. Throws `BackupRefused` with `instead` if it is on PostgreSQL. */
function sqlitePath({ database }: Config, instead: string): string {
  if (database.engine !== 'sqlite') throw new BackupRefused(`the database is on PostgreSQL: ${instead}`)
  requireOwner(database.path)
  return database.path
}

const ownTools = 'use its own tools, such as pg_dump on a standby, and pg_restore (docs/backup.md has the commands)'

export async function backUpDatabase(config: Config, to: string | Writable): Promise<DatabaseFacts> {
  const path = sqlitePath(config, ownTools)
  return typeof to === 'string' ? backUp(path, to, Date.now()) : streamBackup(path, to)
}

/** A stream cannot be checked before it is written, so the backup is a file beside the database first. */
async function streamBackup(path: string, to: Writable): Promise<DatabaseFacts> {
  const file = `${path}.backup-${randomUUID()}`
  const facts = backUp(path, file, Date.now())
  try {
    await pipeline(createReadStream(file), to, { end: false })
    return facts
  } catch (error) {
    throw new BackupRefused(`the backup was not written: ${(error as Error).message}`, { cause: error })
  } finally {
    rmSync(file, { force: true })
  }
}

export function restoreDatabase(
  config: Config,
  file: string | null,
  { cancelQueued }: { cancelQueued: boolean },
): Promise<Restored> {
  const path = sqlitePath(config, ownTools)
  return restore({ path, file, ring: config.ring, cancelQueued, nowMs: Date.now() })
}

/** Copies a database on SQLite to a new one on PostgreSQL. Nothing sends or accepts meanwhile. */
export async function copyDatabase(config: Config, target: PostgresAddress): Promise<CopyReport> {
  const path = sqlitePath(config, 'only a database on SQLite is copied. Set POSTERN_DATABASE_URL to the old one')
  return exportDatabase(path, Date.now(), (rows, onCommitted) => importRows(target, rows, onCommitted))
}

/** Writes everything but queued mail into a file, while the service runs. The schema must be current. */
export function exportArchive(
  { database }: Config,
  file: string,
  { secrets, version }: { readonly secrets: boolean; readonly version: string },
): Promise<ArchivedCounts> {
  const head = { format: 1, schema: newestSchema(), secrets, postern: version, at: new Date().toISOString() } as const
  return writeArchive(file, head, async (onRows) => {
    if (database.engine === 'postgres') return exportRows(database, onRows)
    for (const rows of readSnapshot(database.path)) await onRows(rows)
  })
}

/** Fills a new database with an archive. It must be of this key ring. Returns the rows of each table. */
export async function importArchive({ database, ring }: Config, file: string): Promise<ArchivedCounts> {
  const counts: ArchivedCounts = {}
  const steps = requireHashKey(readArchive(file, newestSchema(), counts), ring)
  if (database.engine === 'postgres') await importRows(database, steps)
  else {
    requireOwner(database.path)
    importDatabase(database.path, steps, Date.now())
  }
  return counts
}

/** Throws if the archive lacks the key by which all hashes are made, or the ring cannot open it. */
function* requireHashKey(steps: Iterable<CopiedRows>, ring: KeyRing): Generator<CopiedRows> {
  let isThere = false
  for (const step of steps) {
    if (step.table === 'secret') {
      const secrets = step.rows.filter(isSecret)
      openSecrets(ring, secrets)
      isThere ||= secrets.some(isHashKey)
    }
    yield step
  }
  if (!isThere) throw new BackupRefused('the archive lacks the hash key, without which no key would work')
}

const isSecret = (row: object): row is StoredSecret =>
  'name' in row && typeof row.name === 'string' && 'sealed' in row && row.sealed instanceof Uint8Array
