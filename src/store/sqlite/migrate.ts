/**
 * Brings the schema up to date: each step is one transaction together with its version row, so a
 * crash leaves whole steps and the next start goes on. Only forward: a program older than the
 * schema refuses and changes nothing.
 */
import { readFileSync } from 'node:fs'
import { migrationSteps, missingSteps, type Step } from '../shared/migrations.ts'
import type { Connection } from './connection.ts'

const folder = new URL('./migrations/', import.meta.url)

/** Applies what is missing. Safe with several processes at once. */
export function migrate(database: Connection, nowMs: number): void {
  const missing = missingSteps(migrationSteps(folder), schemaVersion(database))
  if (missing.length === 0) return
  database.connection.exec(
    'create table if not exists migration (version integer primary key, applied_at integer not null) strict',
  )
  for (const step of missing) applyStep(database, step, nowMs)
}

function applyStep(database: Connection, step: Step, nowMs: number): void {
  database.transaction(() => {
    if (schemaVersion(database) >= step.version) return // another process was quicker
    database.connection.exec(readFileSync(step.file, 'utf8'))
    database.sql('insert into migration values (?, ?)').run(step.version, nowMs)
  })
}

/** 0 where there is no schema yet. */
function schemaVersion(database: Connection): number {
  const table = database.sql("select 1 from sqlite_schema where type = 'table' and name = 'migration'").get()
  if (table === undefined) return 0
  return Number(database.sql('select coalesce(max(version), 0) as version from migration').get()?.version)
}
