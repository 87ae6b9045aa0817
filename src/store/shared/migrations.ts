/**
 * The steps of an engine's schema: files `NNN_name.sql` in its folder, numbered alike in both
 * engines. Steps are only added, never changed after a release.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** The database's schema is not the one that this program knows. The message says what to run. */
class SchemaMismatch extends Error {
  override name = 'SchemaMismatch'
}

/** There is no Postern database yet. */
export class SchemaMissing extends SchemaMismatch {}

export type Step = { readonly version: number; readonly file: URL }

/** In order. `folder` ends in a slash. */
export function migrationSteps(folder: URL): Step[] {
  const names = readdirSync(folder).filter((name) => /^\d{3}_.*\.sql$/.test(name))
  return names.sort().map((name) => ({ version: Number(name.slice(0, 3)), file: new URL(name, folder) }))
}

/** The version that a store has after these steps; 0 without any. */
export const newestVersion = (steps: readonly Step[]): number => steps.at(-1)?.version ?? 0

/**
 * Throws `SchemaMismatch` if the database lacks a column of the steps: until a release, a step may change,
 * and a database made before that has its number all the same.
 * @param present the columns of the database, as `table.column`
 */
export function requireColumns(steps: readonly Step[], present: ReadonlySet<string>): void {
  const made = steps.flatMap(({ file }) => listColumns(readFileSync(file, 'utf8')))
  const tables = new Set([...present].map(readTable))
  const missing = made.filter((column) => !present.has(column))
  const named = new Set(missing.map((column) => (tables.has(readTable(column)) ? column : readTable(column))))
  if (missing.length > 0)
    throw new SchemaMismatch(
      `the database lacks ${[...named].join(', ')}: it was made by a version of Postern that was never released. Keep using that version, or move the database away and start with a new one`,
    )
}

const readTable = (column: string): string => column.slice(0, column.indexOf('.'))

/** The columns of each table that a step creates; a line holds one. */
const listColumns = (text: string): string[] =>
  [...text.matchAll(/^create table (\w+) \(\n((?: {2}.*\n)*)/gm)].flatMap(([, table = '', lines = '']) =>
    [...lines.matchAll(/^ {2}(?!primary|unique|foreign|check|constraint)(\w+) /gm)].map(
      ([, column = '']) => `${table}.${column}`,
    ),
  )

/** Whether opening a store may make and migrate its schema, make a missing one, or neither. */
export type SchemaUse = 'migrate' | 'create' | 'open'

/**
 * The steps to apply to a schema of version `present` (0: there is none). Throws `SchemaMismatch` if
 * the schema is newer than this program, or if it is older and `use` does not allow to change it.
 */
export function stepsToApply(steps: readonly Step[], present: number, use: SchemaUse, place = 'here'): readonly Step[] {
  const newest = newestVersion(steps)
  if (present > newest) {
    throw new SchemaMismatch(
      `the database has schema ${present}, and this Postern knows schema ${newest}: run a newer Postern, or restore a backup that has schema ${newest} (docs/upgrade.md)`,
    )
  }
  const missing = steps.filter((step) => step.version > present)
  if (missing.length === 0 || use === 'migrate' || (use === 'create' && present === 0)) return missing
  if (present === 0) {
    throw new SchemaMissing(
      `there is no Postern database ${place} yet: "postern app create", "postern migrate" or "postern serve" makes one`,
    )
  }
  throw new SchemaMismatch(
    `the database has schema ${present}, and this Postern needs schema ${newest}: run "postern migrate"`,
  )
}
