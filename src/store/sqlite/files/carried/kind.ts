/**
 * One kind of thing that a restore compares: how it is carried over from the database that was there to the
 * copy of the backup. For example, a table whose later rows are kept:
 *
 *     { name: 'audit', tables: ['audit'], carry: merging({ table: 'audit', … }) }
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Found } from '../../../database-facts.ts'

export type Row = Readonly<Record<string, string | number | null>>

/**
 * One connection. `main` is the database that was there; `copy` is the copy of the backup, which takes its
 * place. `later_change` has the changes in the audit of `main` that the audit of `copy` lacks, and
 * `known_removal` the removals of suppressions that `copy` has in its own.
 */
export type Databases = { readonly database: DatabaseSync; readonly nowMs: number }

export type Carried = { readonly carried: Found; readonly lost?: Found }

export type Kind = {
  /** In lists for people and in JSON. */
  readonly name: string
  readonly tables: readonly string[]
  readonly carry: (databases: Databases) => Carried
  /** The part of `copy` that gives access, directs data or holds mail back. It never reads `main`. */
  readonly listWorking?: (databases: Databases) => Found
}

export const readRows = (database: DatabaseSync, text: string, ...values: (string | number)[]): Row[] =>
  database.prepare(text).all(...values) as Row[]

/** Runs a statement. Returns the rows that it changed. */
export const change = (database: DatabaseSync, text: string, ...values: (string | number | null)[]): number =>
  Number(database.prepare(text).run(...values).changes)

export const count = (database: DatabaseSync, from: string, ...values: (string | number)[]): number =>
  Number(readRows(database, `select count(*) as count from ${from}`, ...values)[0]?.count)

/** The columns of a table, as the copy has them: those that only a newer schema has are left behind. */
export const listColumns = (database: DatabaseSync, table: string): string[] =>
  readRows(database, "select name from pragma_table_info(?, 'copy')", table).map(({ name }) => String(name))

export type Merge = {
  readonly table: string
  readonly key: string
  /** The rows of `main` that count, each as `later`. */
  readonly where?: string
  /** Whether a row, `excluded`, replaces the row of the copy, `known`. */
  readonly isNewer: string
}

/** Adds the rows of `main` that the copy lacks, and replaces older ones. It keeps no rows in memory. */
export function mergeRows({ database }: Databases, { table, key, where = 'true', isNewer }: Merge) {
  const columns = listColumns(database, table)
  const before = count(database, `copy.${table}`)
  const written = change(
    database,
    `insert into copy.${table} as known (${columns.join(', ')})
      select ${columns.join(', ')} from main.${table} later where ${where}
      on conflict (${key}) do update
        set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')} where ${isNewer}`,
  )
  const added = count(database, `copy.${table}`) - before
  return { added, replaced: written - added }
}

/** Carries a kind that is one table. `replaced` names the rows that were replaced, in lists for people. */
export const merging =
  (rows: Merge, replaced?: string) =>
  (databases: Databases): Carried => {
    const counts = mergeRows(databases, rows)
    return { carried: { added: counts.added, ...(replaced && { [replaced]: counts.replaced }) } }
  }

/** `Ana (pe_…, reduced)`. */
export function nameRow(...columns: (Row[string] | undefined)[]): string {
  const [name = '', ...notes] = columns.filter((text) => typeof text === 'string' && text !== '')
  return notes.length === 0 ? String(name) : `${name} (${notes.join(', ')})`
}

/** The rows of a statement, each by `nameRow`. */
export const listNames = (database: DatabaseSync, text: string): string[] =>
  readRows(database, text).map((row) => nameRow(...Object.values(row)))

export const list =
  (text: string) =>
  ({ database }: Databases): string[] =>
    listNames(database, text)

/** The apps of the copy that are not deleted, as a condition on a column. */
export const isOfApp = (column: string): string =>
  `${column} in (select app_id from copy.app where status <> 'deleted')`
