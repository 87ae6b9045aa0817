/** People on PostgreSQL: the scripts of `shared/people.ts`, each in a transaction. */
import { peopleChanges } from '../shared/people.ts'
import { peopleReads } from '../shared/people-reads.ts'
import { runScriptAsync, type Script } from '../shared/script.ts'
import type { PostgresContext } from './context.ts'

const deadlineMs = 10_000
/** For look-ups at each request of a browser. */
const shortDeadlineMs = 2000

type AnyScript = (context: unknown, ...args: unknown[]) => Script<unknown>
type Operation = (context: PostgresContext, ...args: readonly never[]) => Promise<unknown>

/** The types of the arguments are checked where a store's method is called. */
function operationsOf<Name extends string>(
  scripts: Readonly<Record<Name, (context: never, ...args: never[]) => Script<unknown>>>,
  run: (context: PostgresContext, script: Script<unknown>, name: string) => Promise<unknown>,
): Record<Name, Operation> {
  const operations = Object.entries<unknown>(scripts).map(([name, script]) => [
    name,
    (context: PostgresContext, ...args: unknown[]) => {
      const scriptContext = {
        prefix: `${context.schema}.`,
        nowMs: context.clock.nowMs(),
        forUpdate: 'for update',
      }
      return run(context, (script as AnyScript)(scriptContext, ...args), name)
    },
  ])
  return Object.fromEntries(operations) as Record<Name, Operation>
}

const changes = operationsOf(peopleChanges, ({ operators }, script) =>
  operators.transaction(
    (query) => runScriptAsync(script, ({ text, values }) => query(text, [...values])),
    deadlineMs,
  ),
)

/** Sessions are looked up apart from operators' work, as management tokens are: anyone can make up a cookie. */
const reads = operationsOf(peopleReads, ({ operators, tokens }, script, name) =>
  runScriptAsync(script, ({ text, values }) =>
    name === 'findSession'
      ? tokens.query(text, [...values], { deadlineMs: shortDeadlineMs })
      : operators.query(text, [...values], { deadlineMs }),
  ),
)

export const peopleOperations = { ...changes, ...reads }
