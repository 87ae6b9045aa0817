/**
 * One connection to the database file, with the settings that durability depends on: WAL with
 * `synchronous=FULL`, read back, because a connection that silently kept NORMAL would lose
 * acknowledged rows in a power cut. Automatic checkpoints are off; `threads/checkpointer.ts` makes them.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StoreUnavailable } from '../../store.ts'

/** How long a writer waits for another process's lock. */
const busyTimeoutMs = 5000

/** Pages in the WAL, and how many of them have been copied into the database file. */
type Progress = { readonly log: number; readonly checkpointed: number }

type FullProgress = Progress & { readonly busy: number }

const toLower = (text: unknown): string | null => (text === null ? null : String(text).toLowerCase())

/** A connection with a cache of prepared statements. */
export class Connection {
  readonly connection: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  /** @param options.isNew the file may not be there yet; otherwise one that has moved is not made anew */
  constructor(path: string, options: { readOnly?: boolean; isNew?: boolean } = {}) {
    const { isNew = false, readOnly = false } = options
    const place = isNew || readOnly ? path : new URL('?mode=rw', pathToFileURL(path))
    this.connection = new DatabaseSync(place, { timeout: busyTimeoutMs, readOnly })
    // SQLite's own knows the letters of ASCII alone.
    this.connection.function('lower', { deterministic: true }, toLower)
    try {
      if (!readOnly) this.#makeDurable()
    } catch (error) {
      this.connection.close()
      throw error
    }
  }

  #makeDurable(): void {
    const { node, sqlite = '' } = process.versions
    if (!keepsCommits(sqlite)) {
      throw new StoreUnavailable(
        `Node ${node} has SQLite ${sqlite}, which may lose committed emails; use the Node that "npm ci" installs, or a newer one`,
      )
    }
    this.connection.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 0')
    this.connection.exec('pragma cache_size = -32768; pragma foreign_keys = on')
    const journal = this.connection.prepare('pragma journal_mode').get()?.journal_mode
    const synchronous = this.connection.prepare('pragma synchronous').get()?.synchronous
    if (journal !== 'wal' || synchronous !== 2) {
      throw new StoreUnavailable(`SQLite would not be durable: journal ${journal}, synchronous ${synchronous}`)
    }
  }

  /** The statement for `text`, prepared once. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.connection.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  /** Runs `work` in one immediate transaction. If `work` throws, rolls back and rethrows. */
  transaction<T>(work: () => T): T {
    this.sql('begin immediate').run()
    try {
      const result = work()
      this.sql('commit').run()
      return result
    } catch (error) {
      if (this.connection.isTransaction) this.sql('rollback').run()
      throw error
    }
  }

  /** Copies as many pages of the WAL into the file as it can without waiting for another connection. */
  checkpoint(): Progress {
    try {
      return this.sql('pragma wal_checkpoint(passive)').get() as Progress
    } catch (error) {
      if (faultKind(error) !== 'temporary') throw error
      return { log: 0, checkpointed: 0 }
    }
  }

  /** Copies all of the WAL into the file, and waits for other connections. Throws if that takes too long. */
  checkpointAll(): void {
    const { busy, log, checkpointed } = this.sql('pragma wal_checkpoint(full)').get() as FullProgress
    if (busy !== 0 || checkpointed < log) throw new StoreUnavailable('another connection holds back the WAL')
  }

  close(): void {
    this.#statements.clear()
    this.connection.close()
  }
}

/**
 * Older versions may lose a transaction that is committed while two checkpoints follow each other
 * (https://sqlite.org/wal.html#walresetbug). Repaired in 3.51.3, and in 3.50.7 of that line.
 */
export function keepsCommits(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major !== 3) return major > 3
  return minor > 51 || (minor === 51 && patch >= 3) || (minor === 50 && patch >= 7)
}

// https://www.sqlite.org/rescode.html, primary codes.
const temporary = new Set([5, 6, 8, 13, 14]) // BUSY, LOCKED, READONLY, FULL, CANTOPEN
/**
 * IOERR_WRITE: a quota (EDQUOT), the largest size of a file (EFBIG), or a failing disk. Unlike after an fsync
 * that failed, nothing is unknown: the transaction is rolled back, and its pages are written anew.
 */
const failedWrite = 778
const fatal = new Set([10, 11, 26]) // IOERR, CORRUPT, NOTADB

/** The file is no whole database: no process can work on it. */
export const isDamaged = (error: unknown): boolean => [11, 26].includes(primaryCode(error) ?? 0)

/** Another connection has the lock. */
export const isBusy = (error: unknown): boolean => primaryCode(error) === 5

function primaryCode(error: unknown): number | null {
  const code = (error as { errcode?: number } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : null
}

/** Sorts an error of SQLite by its meaning for the store: temporary, fatal (end the process), or a bug. */
export type FaultKind = 'temporary' | 'fatal' | 'bug'

export function faultKind(error: unknown): FaultKind {
  if (error instanceof StoreUnavailable) return 'temporary'
  const code = primaryCode(error)
  if (code === null) return 'bug'
  if ((error as { errcode: number }).errcode === failedWrite) return 'temporary'
  if (temporary.has(code)) return 'temporary'
  return fatal.has(code) ? 'fatal' : 'bug'
}
