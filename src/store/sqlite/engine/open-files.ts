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

/** Null if all of them are where they were opened. */
export function findMoved(files: OpenFiles): StoreUnavailable | null {
  try {
    for (const { identity, path } of files) {
      const now = fileIdentity(path)
      if (now !== identity) return new StoreUnavailable(describe(path, now === null))
    }
    return null
  } catch (error) {
    return new StoreUnavailable(`the database cannot be found: ${(error as Error).message}`, { cause: error })
  }
}

function describe(path: string, isGone: boolean): string {
  const what = isGone ? 'was moved, deleted or unmounted' : 'was replaced, or its folder mounted over'
  if (/-(wal|shm)$/.test(path))
    return `${path} ${what} while this process had it open, so nothing is queued or sent. Stop this process with SIGTERM, which writes what it holds into the database, and start it again`
  return isGone
    ? `${path} ${what} while this process had it open, so nothing is queued or sent. Put the file back at this path`
    : `${path} ${what} while this process had it open, so nothing is queued or sent. Put the old file back; or, to use the new one, stop this process, move ${path}-wal and ${path}-shm to the old file, and start again`
}
