/** Files that appear under their name only once they are whole and on disk. */
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** A backup, restore, copy or import was not begun, or was taken back. The message says what to do. */
export class BackupRefused extends Error {
  override name = 'BackupRefused'
}

/** Throws `BackupRefused` if the file exists, or its folder does not. */
export function requireNewFile(file: string): void {
  if (existsSync(file)) throw new BackupRefused(`${file} exists: name another file`)
  if (!existsSync(dirname(file))) throw new BackupRefused(`there is no folder ${dirname(file)}`)
}

/** Unlike a rename, a link never replaces a file. Some file systems have no links. */
export function giveName(part: string, file: string): void {
  try {
    linkSync(part, file)
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') throw new BackupRefused(`${file} exists: name another file`)
    renameSync(part, file)
  }
}

/** Returns once the file, or the names in a folder, would survive a power cut. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export const syncFolder = (path: string): void => syncToDisk(dirname(path))
