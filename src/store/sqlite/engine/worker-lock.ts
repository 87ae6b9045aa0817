/**
 * The lock by which one process alone sends the mail of a database: a transaction that is kept open in
 * exclusive mode on an empty file beside the database. The operating system ends the lock with the process,
 * however the process ends, so a lock that can be taken proves that every lease in the database is void.
 *
 * The file is opened by SQLite alone: when a process closes any other descriptor of it, its lock ends.
 */
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../../store.ts'
import { faultKind, isBusy } from './connection.ts'
import { fileIdentity } from './open-files.ts'

/** Resolved, so that a symbolic link to the database does not lead to another lock. */
const lockPath = (path: string): string => `${existsSync(path) ? realpathSync(path) : path}-worker`

type OpenFile = { readonly database: DatabaseSync; readonly identity: string }

export class WorkerLock {
  readonly #path: string
  #file: OpenFile | null = null
  #isHeld = false

  constructor(path: string) {
    this.#path = lockPath(path)
  }

  /**
   * Takes the lock if no other process has it. `taken`: just now; `made`: the same, but its file was missing,
   * so a process that locked a deleted one may still be sending; `held`: before, without a break.
   */
  tryTake(): 'taken' | 'made' | 'held' | 'not_held' {
    if (this.#isHeld && this.#isIntact()) return 'held'
    try {
      if (!this.#isIntact()) this.release()
      const isMade = !existsSync(this.#path)
      this.#file ??= this.#open()
      this.#file.database.exec('begin exclusive')
      this.#isHeld = true
      return isMade ? 'made' : 'taken'
    } catch (error) {
      if (isBusy(error)) return 'not_held'
      this.release()
      throw unusable(this.#path, error)
    }
  }

  /** False if somebody deleted or replaced the file: another process may then have locked the new one. */
  #isIntact(): boolean {
    return this.#file?.identity === fileIdentity(this.#path)
  }

  #open(): OpenFile {
    const database = new DatabaseSync(this.#path, { timeout: 0 })
    try {
      accessSync(this.#path, constants.W_OK) // SQLite would lock a read-only file for readers only
      return { database, identity: fileIdentity(this.#path) ?? '' }
    } catch (error) {
      database.close()
      throw error
    }
  }

  release(): void {
    this.#file?.database.close()
    this.#file = null
    this.#isHeld = false
  }
}

function unusable(path: string, error: unknown): unknown {
  const isAccess = (error as { code?: string }).code === 'EACCES'
  if (!isAccess && faultKind(error) === 'bug') return error
  const owner = statSync(path, { throwIfNoEntry: false })?.uid
  const user = process.getuid?.()
  const advice =
    owner === undefined || owner === user
      ? 'this user must be able to write it'
      : `it belongs to user ${owner}; give it to the service's user, with chown ${user} ${path}`
  const text = `cannot lock ${path}, so nothing is sent: ${(error as Error).message}. ${advice}`
  return new StoreUnavailable(text, { cause: error })
}
