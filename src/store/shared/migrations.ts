/**
 * The steps of an engine's schema: files `NNN_name.sql` in its folder, numbered alike in every
 * engine, only ever added to.
 */
import { readdirSync } from 'node:fs'

/** The database was made by a newer Postern. */
class SchemaTooNew extends Error {
  override name = 'SchemaTooNew'
}

export type Step = { readonly version: number; readonly file: URL }

/** In their order; `folder` ends in a slash. */
export function migrationSteps(folder: URL): Step[] {
  const names = readdirSync(folder).filter((name) => /^\d{3}_.*\.sql$/.test(name))
  return names.sort().map((name) => ({ version: Number(name.slice(0, 3)), file: new URL(name, folder) }))
}

/** The steps that a schema lacks. Throws where it is newer than this program. */
export function missingSteps(steps: readonly Step[], present: number): readonly Step[] {
  const newest = steps.at(-1)?.version ?? 0
  if (present > newest) {
    throw new SchemaTooNew(
      `the database has schema ${present}, this Postern knows ${newest}: run the newer Postern`,
    )
  }
  return steps.filter((step) => step.version > present)
}
