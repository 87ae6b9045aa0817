/**
 * Brings the schema up to date: each step is one transaction together with its version row, so a
 * crash leaves whole steps and the next start goes on. Only forward: a program older than the
 * schema refuses and changes nothing.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { Database } from './database.ts'

const folder = new URL('./migrations/', import.meta.url)

/** The database was made by a newer Postern. */
class SchemaTooNew extends Error {
  override name = 'SchemaTooNew'
}

type Step = { readonly version: number; readonly file: string }

function migrationSteps(): Step[] {
  const files = readdirSync(folder).filter((file) => /^\d{3}_.*\.sql$/.test(file))
  return files.sort().map((file) => ({ version: Number(file.slice(0, 3)), file }))
}

/** Applies what is missing and returns the files applied. Safe with several processes at once. */
export function migrate(database: Database, nowMs: number): string[] {
  const steps = migrationSteps()
  const newest = steps.at(-1)?.version ?? 0
  const present = schemaVersion(database)
  if (present > newest) {
    throw new SchemaTooNew(
      `the database has schema ${present}, this Postern knows ${newest}: run the newer Postern`,
    )
  }
  if (present === newest) return []
  database.connection.exec(
    'create table if not exists migration (version integer primary key, applied_at integer not null) strict',
  )
  return steps.flatMap((step) => (applyStep(database, step, nowMs) ? [step.file] : []))
}

function applyStep(database: Database, step: Step, nowMs: number): boolean {
  return database.transaction(() => {
    if (schemaVersion(database) >= step.version) return false // another process was quicker
    database.connection.exec(readFileSync(new URL(step.file, folder), 'utf8'))
    database.sql('insert into migration values (?, ?)').run(step.version, nowMs)
    return true
  })
}

/** 0 where there is no schema yet. */
function schemaVersion(database: Database): number {
  const table = database.sql("select 1 from sqlite_schema where type = 'table' and name = 'migration'").get()
  if (table === undefined) return 0
  return Number(database.sql('select coalesce(max(version), 0) as version from migration').get()?.version)
}
