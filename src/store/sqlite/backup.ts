/**
 * A backup: one file with everything that was committed when it began, made while the service runs. It appears
 * under its name only when it is whole, checked and on disk.
 */
import { existsSync, renameSync, rmSync } from 'node:fs'
import type { DatabaseFacts } from '../database-facts.ts'
import { BackupRefused, copyInto, examineFile, syncFolderOf, syncToDisk } from './database-file.ts'

/** Throws `BackupRefused`, for example if `file` exists. */
export function backUp(path: string, file: string, nowMs: number): DatabaseFacts {
  if (existsSync(file)) throw new BackupRefused(`${file} exists: name another file`)
  return makeBackup(path, file, nowMs)
}

/** A backup under the name `file`, in place of an older one. None is kept if its schema is not `schema`. */
function makeBackup(path: string, file: string, nowMs: number, schema?: number): DatabaseFacts {
  if (!existsSync(path)) throw new BackupRefused(`there is no database at ${path}`)
  const part = `${file}.part-${process.pid}`
  copyInto(path, part)
  try {
    const facts = examineFile(part, nowMs, path)
    if (schema !== undefined && facts.schema !== schema) return facts // another process has migrated
    syncToDisk(part)
    renameSync(part, file)
    syncFolderOf(file)
    return facts
  } finally {
    rmSync(part, { force: true })
  }
}

/** Before the schema is changed: the way back is `postern restore` of this file, by the older program. */
export function backUpBeforeMigration(path: string, schema: number, nowMs: number): void {
  makeBackup(path, `${path}.schema-${schema}`, nowMs, schema)
}
