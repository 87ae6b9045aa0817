/**
 * Transactions that are written once for both engines: a script yields statements and gets their rows. SQLite
 * runs it in one go in its writer, PostgreSQL waits for each statement. Everything off the mail path
 * is written so. Placeholders are `$1`, `$2`, …; where the dialects differ, a script asks its `dialect`.
 */
import type { Row } from '../shared/rows.ts'

type Value = string | number | null

export type Statement = { readonly text: string; readonly values: readonly Value[] }

export type Script<T> = Generator<Statement, T, readonly Row[]>

type ColumnType = 'text' | 'bigint' | 'json'

export type Dialect = {
  /**
   * Transactions write at the same time, so rows are locked before they are changed; `app_lock` has a row for
   * each app.
   */
  readonly locksRows: boolean
  /**
   * The column and the value by which counts of a day are spread over rows, each with a comma; or nothing.
   */
  readonly usageSlot: { readonly column: string; readonly value: string }
  /** The condition on a column that a query returns its value, which the planner may look up in an index. */
  readonly isIn: (query: string) => string
  /** The query for the strings of a JSON array, which is the value of a placeholder. */
  readonly elements: (placeholder: string) => string
  /** The objects of a JSON array, which is the value of a placeholder, as the table `objects`. */
  readonly objects: (placeholder: string, columns: Readonly<Record<string, ColumnType>>) => string
}

export type ScriptContext = {
  /** The prefix of tables: that of the schema, or none. */
  readonly prefix: string
  /** The process's clock when the script begins; on PostgreSQL, its estimate of the server's. */
  readonly nowMs: number
  readonly dialect: Dialect
}

/** Ends a `select`: locks its rows where others could change them. */
export const lock = ({ dialect }: ScriptContext, clause: `for ${string}`): string => (dialect.locksRows ? clause : '')

/** The rows of one statement. */
export function* readAll<T>(statement: Statement, toRecord: (row: Row) => T): Script<T[]> {
  return (yield statement).map(toRecord)
}

/** The first row of one statement; null if there is none. */
export function* readOne<T>(statement: Statement, toRecord: (row: Row) => T): Script<T | null> {
  const [row] = yield statement
  return row === undefined ? null : toRecord(row)
}

export function runScript<T>(script: Script<T>, query: (statement: Statement) => readonly Row[]): T {
  let step = script.next()
  while (!step.done) step = script.next(query(step.value))
  return step.value
}

export async function runScriptAsync<T>(
  script: Script<T>,
  query: (statement: Statement) => Promise<readonly Row[]>,
): Promise<T> {
  let step = script.next()
  while (!step.done) step = script.next(await query(step.value))
  return step.value
}
