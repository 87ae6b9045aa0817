/**
 * Transactions that are written once for both engines: a script yields statements and gets their rows. SQLite runs it in
 * one go in its writer thread, PostgreSQL waits for each statement. For tables off the path of emails, whose SQL is the
 * same in both dialects; placeholders are `$1`, `$2`, ….
 */
import type { Action, Actor } from '../../domain/audit.ts'
import { newId } from '../../domain/id.ts'
import type { Row } from './records.ts'
import { auditColumns } from './records.ts'

type Statement = { readonly text: string; readonly values: readonly (string | number | null)[] }

export type Script<T> = Generator<Statement, T, readonly Row[]>

export type ScriptContext = {
  /** The prefix of tables: that of the schema, or none. */
  readonly prefix: string
  readonly nowMs: number
  /** Ends a `select` whose rows the script is going to change. */
  readonly forUpdate: '' | 'for update'
}

/** Writes the audit entry of a change. */
export function* record({ prefix, nowMs }: ScriptContext, action: Action, actor: Actor): Script<void> {
  const columns = { audit_id: newId('au', nowMs), at: nowMs, ...auditColumns(action, actor) }
  const names = Object.keys(columns)
  const places = names.map((_, index) => `$${index + 1}`)
  const text = `insert into ${prefix}audit (${names.join(', ')}) values (${places.join(', ')})`
  yield { text, values: Object.values(columns) }
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
