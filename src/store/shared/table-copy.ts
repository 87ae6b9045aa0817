/**
 * Everything that moves from one database to another, in steps: what SQLite exports and PostgreSQL imports.
 */

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

/** Rows of one step. */
export const copyStepMax = 2000

/** The rows that were copied, by table. */
export type CopiedCounts = Readonly<Record<CopiedTable, number>>

export type CopyReport = {
  readonly copied: CopiedCounts
  /** The new name of the file that was copied. */
  readonly previous: string
}
