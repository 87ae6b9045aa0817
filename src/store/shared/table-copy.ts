/**
 * Everything that moves from one database to another, in steps: what SQLite exports and PostgreSQL imports.
 */
import { BackupRefused } from './files.ts'

/** In the order in which they are copied. */
export const copiedTables = [
  'app',
  'delivery_key',
  'token',
  'person',
  'passkey',
  'audit',
  'activity',
  'refusal',
  'last_check',
  'idempotency',
  'usage_day',
  'queue',
  'history',
  'suppression',
  'signing_key',
  'transport',
  'report_source',
  'webhook_receiver',
  'webhook_message',
  'secret',
] as const
export type CopiedTable = (typeof copiedTables)[number]

export type CopiedRows = {
  readonly table: CopiedTable
  /** Columns by name, as PostgreSQL has them; JSON as text. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/** Throws `BackupRefused` if a row has other columns: what one side does not know would be lost, or null. */
export function requireColumns({ table, rows }: CopiedRows, columns: readonly string[]): void {
  const known = new Set(columns)
  const fits = (names: string[]) => names.length === known.size && names.every((name) => known.has(name))
  if (!rows.every((row) => fits(Object.keys(row))))
    throw new BackupRefused(`the columns of ${table} do not match this version; nothing was imported`)
}

/** For a row that the database does not take. Its values are not repeated. */
export const refuseRow = ({ table }: CopiedRows, cause: unknown): BackupRefused =>
  new BackupRefused(`a row of ${table} cannot be imported; nothing was imported`, { cause })

/** Rows of one step. */
export const copyStepMax = 2000

/** The rows that were copied, by table. */
export type CopiedCounts = Readonly<Record<CopiedTable, number>>

export type CopyReport = {
  readonly copied: CopiedCounts
  /** The new name of the file that was copied. */
  readonly previous: string
}
