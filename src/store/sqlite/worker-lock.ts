/**
 * The lock by which one process alone sends the mail of a database: a transaction that is kept open in
 * exclusive mode on an empty file beside the database. The operating system ends the lock with the process, however
 * the process ends, so a lock that can be taken proves that every lease in the database is void.
 */
import { realpathSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../store.ts'
import { faultKind, isBusy } from './connection.ts'

/** Resolved, so that a symbolic link to the database does not lead to another lock. */
const lockPath = (path: string): string => `${realpathSync(path)}-worker`

export class WorkerLock {
  readonly #path: string
  #file: DatabaseSync | null = null
  #held = false

  constructor(path: string) {
    this.#path = lockPath(path)
  }

  /** Takes the lock if no other process has it. True once this process has it. */
  tryTake(): boolean {
    if (this.#held) return true
    try {
      this.#file ??= new DatabaseSync(this.#path, { timeout: 0 })
      this.#file.exec('begin exclusive')
      this.#held = true
    } catch (error) {
      if (!isBusy(error)) throw unusable(this.#path, error)
    }
    return this.#held
  }

  release(): void {
    this.#file?.close()
    this.#file = null
    this.#held = false
  }
}

function unusable(path: string, error: unknown): unknown {
  if (faultKind(error) === 'bug') return error
  const text = `cannot lock ${path}: ${(error as Error).message}; this user must be able to write it`
  return new StoreUnavailable(text, { cause: error })
}
