/** Makes a database of what another one held. It appears under its name once it is whole and on disk. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { SQLInputValue } from 'node:sqlite'
import { type ArchivedCounts, badRow, otherColumns } from '../../shared/archive.ts'
import { BackupRefused, giveName, syncFolder, syncToDisk } from '../../shared/files.ts'
import type { CopiedRows } from '../../shared/table-copy.ts'
import { Connection } from '../engine/connection.ts'
import { createPrivateFile, findLeftover, removeDatabase, resolveLink } from './database-file.ts'
import { migrate } from './migrate.ts'

/** Columns of PostgreSQL that tables do not have here. */
const absent: Readonly<Record<string, readonly string[]>> = { usage_day: ['slot'] }

/** @returns the rows of each table. Throws `BackupRefused` if there is a database. */
export function importDatabase(given: string, steps: Iterable<CopiedRows>, nowMs: number): ArchivedCounts {
  const path = resolveLink(given)
  const there = existsSync(path) ? path : findLeftover(path)
  if (there !== null) throw new BackupRefused(`${there} already exists: an import needs a new database`)
  const part = `${path}.part-${randomUUID()}`
  createPrivateFile(part, () => {})
  try {
    const counts = fill(part, steps, nowMs)
    syncToDisk(part)
    giveName(part, path)
    syncFolder(path)
    return counts
  } finally {
    removeDatabase(part)
  }
}

function fill(part: string, steps: Iterable<CopiedRows>, nowMs: number): ArchivedCounts {
  const connection = new Connection(part)
  const counts: Record<string, number> = {}
  try {
    migrate(connection, { path: part, use: 'migrate', nowMs })
    connection.transaction(() => {
      for (const step of steps) {
        insertRows(connection, step)
        counts[step.table] = (counts[step.table] ?? 0) + step.rows.length
      }
    })
    connection.connection.exec('pragma journal_mode = delete')
    return counts
  } finally {
    connection.close()
  }
}

function insertRows(connection: Connection, { table, rows }: CopiedRows): void {
  const columns = connection
    .sql('select name from pragma_table_info(?)')
    .all(table)
    .map(({ name }) => String(name))
  const places = columns.map(() => '?').join(', ')
  const insert = connection.sql(`insert into ${table} (${columns.join(', ')}) values (${places})`)
  const known = new Set([...columns, ...(absent[table] ?? [])])
  for (const row of rows) {
    const names = Object.keys(row)
    if (names.length !== known.size || names.some((name) => !known.has(name)))
      throw new BackupRefused(otherColumns(table))
    try {
      insert.run(...columns.map((column) => row[column] as SQLInputValue))
    } catch (error) {
      throw new BackupRefused(badRow(table), { cause: error })
    }
  }
}
