/** People on SQLite: the scripts of `shared/people.ts` in a write transaction, the reads on a connection for reading. */
import { peopleChanges } from '../shared/people.ts'
import { peopleReads } from '../shared/people-reads.ts'
import { runScript, type Script } from '../shared/script.ts'
import type { Connection } from './connection.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

type Sql = { readonly sql: Connection['sql'] }

/** SQLite writes numbered placeholders with a question mark. */
const run = <T>({ sql }: Sql, script: Script<T>): T =>
  runScript(script, ({ text, values }) => sql(text.replace(/\$(?=\d)/g, '?')).all(...values))

type Scripts = Readonly<Record<string, (context: never, ...args: never[]) => Script<unknown>>>
type AnyScript = (context: unknown, ...args: unknown[]) => Script<unknown>

/** Each script as an operation of the writer thread. */
export const peopleOperations = operationsOf<WriteTransaction, keyof typeof peopleChanges>(
  peopleChanges,
  ({ nowMs }) => ({ prefix: '', nowMs, forUpdate: '' }),
)

/** Each script as a read on a connection. */
export const peopleLookUps = operationsOf<Sql, keyof typeof peopleReads>(peopleReads, () => ({ prefix: '' }))

/** The types of the arguments are checked where a store's method is called. */
function operationsOf<On extends Sql, Name extends string>(
  scripts: Scripts,
  contextOf: (on: On) => unknown,
): Record<Name, (on: On, ...args: readonly unknown[]) => unknown> {
  const operations = Object.entries(scripts).map(([name, script]) => [
    name,
    (on: On, ...args: unknown[]) =>
      run({ sql: (text) => on.sql(text) }, (script as AnyScript)(contextOf(on), ...args)),
  ])
  return Object.fromEntries(operations) as Record<Name, (on: On, ...args: readonly unknown[]) => unknown>
}
