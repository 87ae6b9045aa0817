/** People on PostgreSQL: the scripts of `shared/people.ts`, each in a transaction. */
import type { SessionHash } from '../../domain/sign-in.ts'
import type { SessionRecord } from '../people-store.ts'
import { peopleChanges } from '../shared/people.ts'
import { peopleReads } from '../shared/people-reads.ts'
import { runScriptAsync, type Script } from '../shared/script.ts'
import { findSecret, type PostgresContext } from './context.ts'

const deadlineMs = 10_000
/** For look-ups at each request of a browser. */
const shortDeadlineMs = 2000

type AnyScript = (context: unknown, ...args: unknown[]) => Script<unknown>
type Operation = (context: PostgresContext, ...args: readonly never[]) => Promise<unknown>

/** The types of the arguments are checked where a store's method is called. */
function operationsOf<Name extends string>(
  scripts: Readonly<Record<Name, (context: never, ...args: never[]) => Script<unknown>>>,
  run: (context: PostgresContext, begin: () => Script<unknown>, name: string) => Promise<unknown>,
): Record<Name, Operation> {
  const operations = Object.entries<unknown>(scripts).map(([name, script]) => [
    name,
    (context: PostgresContext, ...args: unknown[]) => {
      const scriptContext = {
        prefix: `${context.schema}.`,
        nowMs: context.clock.nowMs(),
        forUpdate: 'for update',
      }
      return run(context, () => (script as AnyScript)(scriptContext, ...args), name)
    },
  ])
  return Object.fromEntries(operations) as Record<Name, Operation>
}

const changes = operationsOf(peopleChanges, ({ operators }, begin) =>
  operators.transaction(
    (query) => runScriptAsync(begin(), ({ text, values }) => query(text, [...values])),
    deadlineMs,
  ),
)

/** Asked on behalf of somebody who may be a stranger, apart from operators' work. */
const strangersAsk = new Set(['isSignInCode', 'findPasskey'])

const reads = operationsOf(peopleReads, ({ operators, strangers }, begin, name) =>
  runScriptAsync(begin(), ({ text, values }) =>
    strangersAsk.has(name)
      ? strangers.query(text, [...values], { deadlineMs: shortDeadlineMs })
      : operators.query(text, [...values], { deadlineMs }),
  ),
)

/** Anyone can make up a cookie. */
const findSession = (context: PostgresContext, hash: SessionHash): Promise<SessionRecord | null> =>
  findSecret(context, hash, (pool) =>
    runScriptAsync(peopleReads.findSession({ prefix: `${context.schema}.` }, hash), ({ text, values }) =>
      pool.query(text, [...values], { deadlineMs: shortDeadlineMs }),
    ),
  )

export const peopleOperations = { ...changes, ...reads, findSession }
