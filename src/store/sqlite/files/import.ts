/** Makes a database of what another one held. It appears under its name once it is whole and on disk. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { SQLInputValue } from 'node:sqlite'
import { BackupRefused, giveName, syncFolder, syncToDisk } from '../../shared/files.ts'
import { type CopiedRows, refuseRow, requireColumns } from '../../shared/table-copy.ts'
import { Connection } from '../engine/connection.ts'
import { createPrivateFile, findLeftover, removeDatabase, resolveLink } from './database-file.ts'
import { migrate } from './migrate.ts'

/** Columns of PostgreSQL that tables do not have here. */
const absent: Readonly<Record<string, readonly string[]>> = { usage_day: ['slot'] }

/** Throws `BackupRefused` if there is a database. */
export function importDatabase(given: string, steps: Iterable<CopiedRows>, nowMs: number): void {
  const path = resolveLink(given)
  const there = existsSync(path) ? path : findLeftover(path)
  if (there !== null) throw new BackupRefused(`${there} already exists: an import needs a new database`)
  const part = `${path}.part-${randomUUID()}`
  createPrivateFile(part, () => {})
  try {
    fill(part, steps, nowMs)
    syncToDisk(part)
    giveName(part, path)
    syncFolder(path)
  } finally {
    removeDatabase(part)
  }
}

function fill(part: string, steps: Iterable<CopiedRows>, nowMs: number): void {
  const connection = new Connection(part)
  try {
    migrate(connection, { path: part, use: 'migrate', nowMs })
    connection.transaction(() => {
      for (const step of steps) insertRows(connection, step)
    })
    connection.connection.exec('pragma journal_mode = delete')
  } finally {
    connection.close()
  }
}

function insertRows(connection: Connection, step: CopiedRows): void {
  const { table, rows } = step
  const info = connection.sql('select name from pragma_table_info(?)').all(table)
  const columns = info.map(({ name }) => String(name))
  requireColumns(step, [...columns, ...(absent[table] ?? [])])
  const places = columns.map(() => '?').join(', ')
  const insert = connection.sql(`insert into ${table} (${columns.join(', ')}) values (${places})`)
  try {
    for (const row of rows) insert.run(...columns.map((column) => row[column] as SQLInputValue))
  } catch (error) {
    throw refuseRow(step, error)
  }
}
