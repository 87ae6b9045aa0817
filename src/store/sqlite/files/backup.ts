/**
 * A backup: one file with everything that was committed when it began, made while the service runs. It
 * appears under its name only when it is whole, checked and on disk.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'
import { resolve } from 'node:path'
import type { DatabaseFacts } from '../../database-facts.ts'
import { BackupRefused, giveName, requireNewFile, syncFolder, syncToDisk } from '../../shared/files.ts'
import { companions, copyInto, examineFile, removeDatabase } from './database-file.ts'

/** Throws `BackupRefused`, for example if `file` exists. */
export function backUp(path: string, file: string, nowMs: number): DatabaseFacts {
  if (!existsSync(path)) throw new BackupRefused(`there is no database at ${path}`)
  requireNewFile(file)
  if ([...companions, '-worker'].some((suffix) => resolve(file) === resolve(path + suffix)))
    throw new BackupRefused(`${file} is a name that SQLite uses for the database: name another file`)
  const facts = writeCopy(path, `${file}.part-${randomUUID()}`, nowMs, (part) => giveName(part, file))
  syncFolder(file)
  return facts
}

/**
 * Before the schema is changed, by the process that holds the lock for writing. The way back is `postern
 * restore` of this file, by the older program.
 */
export function backUpBeforeMigration(path: string, schema: number, nowMs: number): void {
  const file = `${path}.schema-${schema}`
  const part = `${file}.part`
  removeDatabase(part) // left by a process that was killed here
  writeCopy(path, part, nowMs, () => renameSync(part, file))
  syncFolder(file)
}

function writeCopy(path: string, part: string, nowMs: number, give: (part: string) => void): DatabaseFacts {
  copyInto(path, part)
  try {
    const facts = examineFile(part, nowMs, path)
    syncToDisk(part)
    give(part)
    return facts
  } finally {
    removeDatabase(part)
  }
}
