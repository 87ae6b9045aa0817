/** A database as a file: what it holds, whether it is whole, and the calls that make a copy of it last. */
import { closeSync, existsSync, lstatSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sealingKeyId } from '../../crypto/key-ring.ts'
import type { DatabaseFacts } from '../../database-facts.ts'
import { BackupRefused } from '../../shared/files.ts'
import { testSlug } from '../../shared/rows.ts'
import { StoreUnavailable } from '../../store.ts'
import { faultKind, isBusy } from '../engine/connection.ts'
import { WorkerLock } from '../engine/worker-lock.ts'

/**
 * Examines a file that no process has open. Throws `BackupRefused` if it is not a whole database of Postern,
 * naming it as `name`.
 */
export function examineFile(path: string, nowMs: number, name = path): DatabaseFacts {
  const bytes = statSync(path).size
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const check = database.prepare('pragma integrity_check(1)').get()?.integrity_check
    if (check !== 'ok') throw new Error(String(check).split('\n').at(-1))
    return { bytes, ...readFacts(database, nowMs) }
  } catch (error) {
    const text = `${name} is not a whole Postern database: ${(error as Error).message}. Use another backup`
    throw new BackupRefused(text, { cause: error })
  } finally {
    database.close()
  }
}

function readFacts(database: DatabaseSync, nowMs: number): Omit<DatabaseFacts, 'bytes'> {
  const count = (sql: string, ...values: number[]): number =>
    Number(Object.values(database.prepare(sql).get(...values) ?? {})[0])
  const keyIds = new Set<string>()
  for (const { sealed } of database
    .prepare("select sealed from secret where name = 'hash-key' union all select sealed from queue")
    .iterate())
    keyIds.add(sealingKeyId(sealed as Uint8Array))
  return {
    schema: count('select coalesce(max(version), 0) from migration'),
    apps: count(`select count(*) from app where status <> 'deleted' and slug not like '${testSlug}%'`),
    queued: count('select count(*) from queue'),
    expired: count('select count(*) from queue where expires_at <= ?', nowMs),
    keyIds: [...keyIds].sort(),
  }
}

/** The process that sends from the database, or may, is there. */
const inUse = (path: string, doing: string): BackupRefused =>
  new BackupRefused(
    `a process has the database ${path} open: stop the service, and wait for commands to end, before ${doing}`,
  )

/**
 * Runs `work` while no process sends from the database, also if the file is deleted or damaged.
 * @param doing completes "stop the service before …"
 */
export async function withWorkerLock<T>(path: string, doing: string, work: () => T | Promise<T>): Promise<T> {
  const lock = new WorkerLock(path)
  const taken = lock.tryTake()
  try {
    if (taken === 'not_held') throw inUse(path, doing)
    return await work()
  } finally {
    // Alone, its file would say that there was a database.
    if (taken === 'made' && !existsSync(path)) rmSync(`${path}-worker`)
    lock.release()
  }
}

/**
 * Opens the database so that no other process can, until the connection is closed. Its WAL is written into
 * the file first: SQLite would remove the WAL by its name when the connection is closed. For the same reason
 * the connection keeps no journal.
 */
export function openExclusive(path: string, doing: string): DatabaseSync {
  const { ino } = statSync(path)
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    database.exec('pragma locking_mode = exclusive; begin exclusive; commit')
    database.exec('pragma journal_mode = delete; pragma journal_mode = memory; begin exclusive')
    if (statSync(path).ino !== ino) throw inUse(path, doing) // it was replaced before the lock was ours
    rmSync(`${path}-journal`, { force: true })
    return database
  } catch (error) {
    database.close()
    throw isBusy(error) ? inUse(path, doing) : error
  }
}

/**
 * Copies the database as it is at one moment, with what is only in its WAL, into a new file. Waits for no
 * writer, and no writer waits. Throws `BackupRefused`, and then leaves no file.
 */
export function copyInto(path: string, file: string): void {
  createPrivateFile(file, () => {
    const source = new DatabaseSync(path, { readOnly: true })
    try {
      source.prepare('vacuum into ?').run(file)
    } finally {
      source.close()
    }
  })
}

/**
 * Makes a file that only its owner can read, and fills it. Throws `BackupRefused`, and then leaves no file.
 */
export function createPrivateFile(file: string, fill: (descriptor: number) => void): void {
  let descriptor: number | null = null
  try {
    descriptor = openSync(file, 'wx', 0o600)
    fill(descriptor)
  } catch (error) {
    if (descriptor !== null) removeDatabase(file)
    const isSystem = (error as { syscall?: string }).syscall !== undefined
    if (!isSystem && faultKind(error) !== 'temporary') throw error
    throw new BackupRefused(`cannot write ${file}: ${(error as Error).message}`, { cause: error })
  } finally {
    if (descriptor !== null) closeSync(descriptor)
  }
}

/**
 * The ends of the names of the files that SQLite keeps beside a database, and reads into it when it is
 * opened.
 */
export const companions = ['-wal', '-shm', '-journal']

/** The file that a symbolic link leads to: SQLite keeps the WAL beside it. */
export function resolveLink(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return path
  throw new StoreUnavailable(`${path} is a symbolic link that leads nowhere: is its disk mounted?`)
}

/** Null if there is no file. */
export const sizeOf = (path: string): number | null => statSync(path, { throwIfNoEntry: false })?.size ?? null

/**
 * The file beside a missing or empty database that may hold its mail: SQLite would delete it. Null if none
 * does.
 */
export function findLeftover(path: string): string | null {
  if (sizeOf(path)) return null
  return [`${path}-wal`, `${path}-journal`].find(sizeOf) ?? null
}

export function removeDatabase(path: string): void {
  for (const suffix of ['', ...companions]) rmSync(path + suffix, { force: true })
}
