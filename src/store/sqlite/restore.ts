/** Puts a backup in the place of the database. The database that was there is kept under another name. */
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type KeyRing, openHashKey } from '../crypto/key-ring.ts'
import type { Restored } from '../database-facts.ts'
import { dayMs } from '../shared/bounds.ts'
import { faultKind } from './connection.ts'
import {
  BackupRefused,
  createPrivateFile,
  examineFile,
  openExclusive,
  syncFolderOf,
  syncToDisk,
} from './database-file.ts'
import { requireKnownSchema } from './migrate.ts'

export type RestoreOptions = {
  /** The place of the database. */
  readonly path: string
  /** The backup. It is only read. */
  readonly file: string
  readonly ring: KeyRing
  /** Cancel the emails that were queued when the backup was made. */
  readonly cancelQueued: boolean
  readonly nowMs: number
}

/** Throws `BackupRefused`, `SchemaMismatch` or `KeyMissing`, and then has changed nothing. */
export function restore({ path, file, ring, cancelQueued, nowMs }: RestoreOptions): Restored {
  requireBackup(path, file)
  const part = `${path}.part-${process.pid}`
  createPrivateFile(part, () => {
    copyFileSync(file, part)
    chmodSync(part, 0o600) // it has the mode of the backup now
  })
  try {
    const facts = examineFile(part, nowMs, file)
    prepareCopy(part, { ring, cancelQueued, nowMs })
    syncToDisk(part)
    const previous = replaceDatabase(path, part, nowMs)
    syncFolderOf(path)
    const missingKeyIds = facts.keyIds.filter((id) => !ring.some((key) => key.id === id))
    return { ...facts, previous, missingKeyIds }
  } finally {
    rmSync(part, { force: true })
  }
}

function requireBackup(path: string, file: string): void {
  try {
    accessSync(file, constants.R_OK)
  } catch (error) {
    throw new BackupRefused(`cannot read the backup: ${(error as Error).message}`, { cause: error })
  }
  if (existsSync(path) && realpathSync(file) === realpathSync(path))
    throw new BackupRefused(`${file} is the database itself: name a backup`)
  if (existsSync(`${file}-wal`)) {
    throw new BackupRefused(
      `${file}-wal stands beside ${file}: this is a copied database, not a backup, and the newest mail is in the second file. Make a backup of it first: POSTERN_DATABASE_URL=sqlite:${file} postern backup NEW-FILE`,
    )
  }
}

function prepareCopy(
  part: string,
  { ring, cancelQueued, nowMs }: Omit<RestoreOptions, 'path' | 'file'>,
): void {
  const database = new DatabaseSync(part)
  try {
    requireKnownSchema(
      Number(database.prepare('select max(version) as version from migration').get()?.version),
    )
    const row = database.prepare("select sealed from secret where name = 'hash-key'").get()
    openHashKey(ring, row?.sealed as Uint8Array | undefined)
    if (cancelQueued) cancelAll(database, nowMs)
  } finally {
    database.close()
  }
}

function cancelAll(database: DatabaseSync, nowMs: number): void {
  database.exec('begin')
  database
    .prepare(
      `insert into history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at,
         expires_at, finished_at, recipient, trail, trace)
       select email_id, app_id, key_id, type, 'cancelled', 'by_operator', attempts, lost_leases, accepted_at,
         expires_at, ?, recipient, trail, trace from queue`,
    )
    .run(nowMs)
  database
    .prepare(
      `insert into usage_day (app_id, day, event, count)
       select app_id, ?, 'cancelled', count(*) from queue where true group by app_id
       on conflict do update set count = count + excluded.count`,
    )
    .run(Math.floor(nowMs / dayMs))
  database.exec('delete from queue; update queue_depth set count = 0; commit')
}

/** Returns the new name of the database that was there. */
function replaceDatabase(path: string, part: string, nowMs: number): string | null {
  const aside = `${path}.before-restore-${new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, '')}`
  const existed = existsSync(path)
  const held = existed ? lockOldDatabase(path) : null
  try {
    // Also the WAL of a database that was deleted or is damaged: SQLite would apply it to the restored one.
    for (const suffix of ['', '-wal', '-shm'])
      if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
    renameSync(part, path)
  } finally {
    held?.close()
  }
  return existed ? aside : null
}

/** Null if the database is so damaged that no process can have it open. */
function lockOldDatabase(path: string): DatabaseSync | null {
  try {
    const database = openExclusive(path, 'a restore')
    // Without a WAL: closing the connection would remove files by their names, which are the new database's then.
    database.exec('pragma journal_mode = delete; begin exclusive')
    return database
  } catch (error) {
    if (error instanceof BackupRefused || faultKind(error) !== 'fatal') throw error
    return null
  }
}
