/** Puts a backup in the place of the database. The database that was there is kept under another name. */

import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { dayMs } from '../../../domain/duration.ts'
import { type KeyRing, openSecrets, type StoredSecret } from '../../crypto/key-ring.ts'
import type { Comparison, Restored } from '../../database-facts.ts'
import { BackupRefused, syncFolder, syncToDisk } from '../../shared/files.ts'
import { isDamaged } from '../engine/connection.ts'
import { count } from './carried/kind.ts'
import { emptiedTables, tablesAsInBackup } from './carried/kinds.ts'
import { attachCopy, carryOver, damaged, listWorking, notCompared } from './carry-over.ts'
import {
  companions,
  createPrivateFile,
  examineFile,
  findLeftover,
  openExclusive,
  removeDatabase,
  resolveLink,
  withWorkerLock,
} from './database-file.ts'
import { requireKnownSchema } from './migrate.ts'

export type RestoreOptions = {
  /** The place of the database. */
  readonly path: string
  /** The backup, which is only read; null: standard input. */
  readonly file: string | null
  readonly ring: KeyRing
  /** Cancel the emails that were queued when the backup was made. */
  readonly cancelQueued: boolean
  readonly nowMs: number
}

/**
 * Rejects with `BackupRefused`, `SchemaMismatch`, `KeyMissing` or `KeyDiffers`, and then has changed nothing.
 */
export function restore(options: RestoreOptions): Promise<Restored> {
  const { path, file } = options
  const place = resolveLink(path)
  if (file !== null) requireBackup(place, file)
  return withWorkerLock(place, doing, () => restoreTo(place, options))
}

const doing = 'a restore'

function restoreTo(place: string, { file, ring, cancelQueued, nowMs }: RestoreOptions): Restored {
  const part = `${place}.part-${randomUUID()}`
  createPrivateFile(part, (descriptor) => copyContent(file, descriptor))
  try {
    const facts = examineFile(part, nowMs, file ?? 'standard input')
    requireKnownSchema(facts.schema)
    prepareCopy(part, ring)
    const replaced = replaceDatabase(place, { part, ring, cancelQueued, nowMs })
    syncFolder(place)
    const missingKeyIds = facts.keyIds.filter((id) => !ring.some((key) => key.id === id))
    const asInBackup = tablesAsInBackup.flatMap(({ name }) => name ?? [])
    return { ...facts, ...replaced, asInBackup, missingKeyIds }
  } finally {
    removeDatabase(part)
  }
}

function requireBackup(path: string, given: string): void {
  const file = resolveBackup(given)
  if (existsSync(path) && file === realpathSync(path))
    throw new BackupRefused(`${given} is the database itself: name a backup`)
  const companion = ['-wal', '-journal'].find((suffix) => existsSync(file + suffix))
  if (companion === undefined) return
  throw new BackupRefused(
    `${file}${companion} is next to ${file}: this is a copied database, not a backup, and its newest mail is in the second file. Make a backup of it first: POSTERN_DATABASE_URL=sqlite:${file} postern backup NEW-FILE`,
  )
}

function resolveBackup(file: string): string {
  try {
    accessSync(file, constants.R_OK)
    if (!statSync(file).isFile()) throw new Error(`${file} is not a file`)
    return realpathSync(file)
  } catch (error) {
    throw new BackupRefused(`cannot read the backup: ${(error as Error).message}`, { cause: error })
  }
}

const chunkBytes = 1024 * 1024
const retryReadMs = 10

/** `copyFile` would give the copy the mode of the backup for a moment. */
function copyContent(file: string | null, to: number): void {
  const standardInput = 0
  const from = file === null ? standardInput : openSync(file, 'r')
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    for (let read = readSome(from, chunk); read > 0; read = readSome(from, chunk))
      writeFileSync(to, chunk.subarray(0, read))
  } finally {
    if (from !== standardInput) closeSync(from)
  }
}

/** Waits while standard input has nothing yet. */
function readSome(from: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(from, chunk)
    } catch (error) {
      const { code } = error as { code?: string }
      if (code === 'EOF') return 0
      if (code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryReadMs)
    }
  }
}

function prepareCopy(part: string, ring: KeyRing): void {
  const database = new DatabaseSync(part)
  try {
    // In a WAL, a change could fail when the connection is closed, without an error.
    const journal = database.prepare('pragma journal_mode = delete').get()?.journal_mode
    if (journal !== 'delete') throw new BackupRefused(`cannot change ${part}: its journal is ${journal}`)
    openSecrets(ring, database.prepare('select name, sealed from secret').all() as StoredSecret[])
    for (const table of emptiedTables) database.exec(`delete from ${table}`)
  } finally {
    database.close()
  }
}

type Replacement = Omit<RestoreOptions, 'path' | 'file'> & { readonly part: string }
type Replaced = Comparison & Pick<Restored, 'previous' | 'works' | 'waiting' | 'toSend'>

/**
 * `previous`: the new name of the database that was there. The place of the database is never empty
 * meanwhile.
 */
function replaceDatabase(path: string, replacement: Replacement): Replaced {
  const { part, nowMs } = replacement
  const left = findLeftover(path)
  if (left !== null) {
    throw new BackupRefused(
      `${left} is left over from a database that was deleted or moved, and may hold mail: stop any process still using it, then put its database back, or move this file away`,
    )
  }
  if (!existsSync(path)) {
    const facts = finishCopy(replacement)
    for (const suffix of companions) rmSync(path + suffix, { force: true }) // empty
    place(part, path)
    return { previous: null, ...notCompared('there was no database in its place'), ...facts }
  }
  const previous = `${path}.before-restore-${new Date(nowMs).toISOString().replace(/[-:]/g, '')}`
  const held = lockOldDatabase(path)
  try {
    const comparison = held === null ? notCompared(damaged) : carryOver(held, part, replacement)
    const facts = finishCopy(replacement)
    place(path, previous)
    // A damaged database may have left them: SQLite would read them into the restored one.
    rmSync(`${path}-shm`, { force: true })
    for (const suffix of companions) if (existsSync(path + suffix)) renameSync(path + suffix, previous + suffix)
    syncFolder(path)
    renameSync(part, path)
    return { previous, ...comparison, ...facts }
  } finally {
    held?.close()
  }
}

/** Cancels mail if that was asked for, and writes the copy to the disk. */
function finishCopy({ part, cancelQueued, nowMs }: Replacement): Pick<Restored, 'works' | 'waiting' | 'toSend'> {
  const database = new DatabaseSync(':memory:')
  try {
    attachCopy(database, part)
    const waiting = count(database, 'copy.queue')
    const toSend = count(database, 'copy.queue where expires_at > ?', nowMs)
    if (cancelQueued) cancelAll(database, nowMs)
    return { works: listWorking({ database, nowMs }), waiting, toSend }
  } finally {
    database.close()
    syncToDisk(part)
  }
}

function cancelAll(database: DatabaseSync, nowMs: number): void {
  database.exec('begin')
  database
    .prepare(
      `insert into copy.history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at,
         expires_at, finished_at, recipient, trail, traceparent)
       select email_id, app_id, key_id, type, 'cancelled', 'by_operator', attempts, lost_leases, accepted_at,
         expires_at, ?, recipient, trail, traceparent from copy.queue`,
    )
    .run(nowMs)
  database
    .prepare(
      `insert into copy.usage_day (app_id, day, event, count)
       select app_id, ?, 'cancelled', count(*) from copy.queue where true group by app_id
       on conflict do update set count = count + excluded.count`,
    )
    .run(Math.floor(nowMs / dayMs))
  database.exec('delete from copy.queue; update copy.queue_depth set count = 0; commit')
}

/** A second name, which never takes the place of a file. */
function place(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    throw new BackupRefused(
      code === 'EEXIST'
        ? `${to} has appeared meanwhile: is a process starting? Stop it, and restore again`
        : `cannot make ${to}; the file system must have hard links: ${message}`,
      { cause: error },
    )
  }
}

/** Null if the database is so damaged that no process can have it open. */
function lockOldDatabase(path: string): DatabaseSync | null {
  try {
    return openExclusive(path, doing)
  } catch (error) {
    if (!isDamaged(error)) throw error
    return null
  }
}
