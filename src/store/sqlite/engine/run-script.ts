/** Runs the scripts of `operators/` on a connection. */
import { type Dialect, runScript, type Script, type ScriptContext } from '../../scripts/script.ts'
import type { Connection } from './connection.ts'

/** A write transaction, or a connection for reading. */
export type ScriptTarget = { readonly sql: Connection['sql']; readonly nowMs: number }

const dialect: Dialect = {
  locksRows: false, // one transaction writes at a time
  usageSlot: { column: '', value: '' },
  isIn: (query) => `in (${query})`,
  elements: (placeholder) => `select value from json_each(${placeholder})`,
  objects: (placeholder, columns) => {
    const values = Object.keys(columns).map((name) => `value ->> '${name}' as ${name}`)
    return `(select ${values.join(', ')} from json_each(${placeholder})) objects`
  },
}

/** SQLite writes numbered placeholders with a question mark. */
export const runOn = <T>(target: ScriptTarget, begin: (context: ScriptContext) => Script<T>): T =>
  runScript(begin({ prefix: '', nowMs: target.nowMs, dialect }), ({ text, values }) =>
    target.sql(text.replace(/\$(?=\d)/g, '?')).all(...values),
  )
