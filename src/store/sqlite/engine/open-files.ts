/**
 * The files of an open database: each must still be the file at its path. Written to a file that was moved,
 * deleted, replaced or mounted over, an email would be gone at the next start.
 */
import { realpathSync, statSync } from 'node:fs'
import { StoreUnavailable } from '../../store.ts'

/** Device and inode, which tell files apart; null if there is none. */
export function fileIdentity(path: string): string | null {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`
}

export type OpenFiles = readonly { readonly path: string; readonly identity: string | null }[]

/**
 * Call it while the database is open, so that SQLite has made its WAL: beside the file that a link leads to.
 */
export function noteOpenFiles(path: string): OpenFiles {
  const real = realpathSync(path)
  return [path, `${real}-wal`, `${real}-shm`].map((each) => ({ path: each, identity: fileIdentity(each) }))
}

/** The process must end at once, and close nothing. */
export class DatabaseLost extends Error {
  override name = 'DatabaseLost'
}

export type Moved = {
  readonly error: StoreUnavailable
  /**
   * The WAL or its index is gone: the next process to open the database makes another one, and both would be
   * written into it. So this process must end, without closing it.
   */
  readonly isOver: boolean
  /** Nothing has taken the place of the file. */
  readonly isGone: boolean
}

/** Null if all of them are where they were opened. */
export function findMoved(files: OpenFiles): Moved | null {
  try {
    for (const { identity, path } of files) {
      const now = fileIdentity(path)
      if (now === identity) continue
      const isOver = /-(wal|shm)$/.test(path)
      return {
        error: new StoreUnavailable(describe(path, now === null, isOver)),
        isOver,
        isGone: now === null,
      }
    }
    return null
  } catch (cause) {
    const error = new StoreUnavailable(`the database cannot be found: ${(cause as Error).message}`, { cause })
    return { error, isOver: false, isGone: true }
  }
}

function describe(path: string, isGone: boolean, isOver: boolean): string {
  const what = isGone ? 'was moved, deleted or unmounted' : 'was replaced, or its folder mounted over'
  const then = isOver
    ? 'so it ends: start it again'
    : isGone
      ? 'so nothing is queued or sent. Put the file back at this path'
      : `so nothing is queued or sent. Put the old file back; or, to use the new one, stop this process, move ${path}-wal and ${path}-shm to the old file, and start again`
  return `${path} ${what} while this process had it open, ${then}`
}
