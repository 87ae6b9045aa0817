/** Backup, restore and copy of the configured database. They open no store: the file is what they work on. */
import { once } from 'node:events'
import { createReadStream, rmSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/parse-config.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import { type ImportedCounts, importRows } from '../store/postgres/import.ts'
import { backUp } from '../store/sqlite/backup.ts'
import { BackupRefused, type DatabaseFacts } from '../store/sqlite/database-file.ts'
import { exportRows } from '../store/sqlite/export.ts'
import { type Restored, restore } from '../store/sqlite/restore.ts'
import { requireOwner } from './store.ts'

/** The path of the SQLite database. Throws `BackupRefused` with `instead` if it is on PostgreSQL. */
function sqlitePath({ database }: Config, instead: string): string {
  if (database.engine !== 'sqlite') throw new BackupRefused(`the database is on PostgreSQL: ${instead}`)
  requireOwner(database.path)
  return database.path
}

const ownTools =
  'use its own tools, such as pg_dump on a standby, and pg_restore (docs/backup.md has the commands)'

/** @param file its name, or `-` for standard output */
export async function backUpDatabase(config: Config, file: string): Promise<DatabaseFacts> {
  const path = sqlitePath(config, ownTools)
  if (file !== '-') return backUp(path, file, Date.now())
  if (process.stdout.isTTY)
    throw new BackupRefused('"-" writes the database to standard output: redirect it to a file')
  const passing = `${path}.backup-${process.pid}`
  try {
    const facts = backUp(path, passing, Date.now())
    const content = createReadStream(passing)
    await once(content, 'open')
    rmSync(passing)
    await pipeline(content, process.stdout, { end: false })
    return facts
  } finally {
    rmSync(passing, { force: true })
  }
}

export async function restoreDatabase(
  config: Config,
  file: string,
  { cancelQueued }: { cancelQueued: boolean },
): Promise<Restored> {
  const path = sqlitePath(config, ownTools)
  return restore({ path, file, ring: config.ring, cancelQueued, nowMs: Date.now() })
}

/** Copies a database on SQLite to an empty one on PostgreSQL. Nothing sends or accepts meanwhile. */
export function copyDatabase(config: Config, target: PostgresAddress): Promise<ImportedCounts> {
  const path = sqlitePath(config, 'only a database on SQLite is copied')
  return importRows({ address: target, ring: config.ring }, exportRows(path))
}
