/** Runs the scripts of `operators/`, each on the connections that are kept for its callers. */

import { activityChanges, activityNotes } from '../../scripts/activity.ts'
import { inboxDeliveries } from '../../scripts/inbox.ts'
import { reportChanges } from '../../scripts/reports.ts'
import { type Dialect, runScriptAsync, type Script, type ScriptContext } from '../../scripts/script.ts'
import { bindScript, changes, notes, reads, snapshotReads } from '../../scripts/scripts.ts'
import { webhookDeliveries } from '../../scripts/webhooks.ts'
import { type Methods, toMethods } from '../../shared/methods.ts'
import type { Query } from './connection.ts'
import { findSecret, type PostgresContext } from './context.ts'
import type { Pool } from './pool.ts'

const deadlineMs = 10_000
/** For readiness checks, requests and hosted pages. */
const shortDeadlineMs = 2000

const dialect: Dialect = {
  locksRows: true,
  usageSlot: { column: 'slot, ', value: '-1, ' }, // no other connection counts there
  isIn: (query) => `= any(array(${query}))`,
  elements: (placeholder) => `select json_array_elements_text(${placeholder}::json)`,
  objects: (placeholder, columns) => {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    return `json_to_recordset(${placeholder}::json) objects(${typed.join(', ')})`
  },
}

/** Runs a script by `query`, which may be that of a transaction. */
export const runIn = <T>(
  { clock, schema }: PostgresContext,
  query: Query,
  begin: (context: ScriptContext) => Script<T>,
): Promise<T> =>
  runScriptAsync(begin({ prefix: `${schema}.`, nowMs: clock.nowMs(), dialect }), ({ text, values }) =>
    query(text, [...values]),
  )

/** Records that processes make of themselves, and reports, do not wait for operators. */
const observed = new Set(Object.keys({ ...activityChanges, ...activityNotes }))
const reported = new Set(Object.keys({ ...reportChanges, ...webhookDeliveries, ...inboxDeliveries }))

/** The connections of a read that is not an operator's. */
function choosePool(name: keyof typeof reads, context: PostgresContext): { pool: Queries; deadlineMs: number } {
  const { lookups, observers, operators, pages, reports, strangers } = context
  switch (name) {
    case 'findAppBySlug':
    case 'listAuthHookSecrets':
    case 'listLinkDomains':
      return { pool: pages, deadlineMs: shortDeadlineMs }
    case 'readQueueGauge':
    case 'findSigningKeys':
    case 'listTransports':
      return { pool: lookups, deadlineMs: shortDeadlineMs }
    case 'isSignInCode':
    case 'findPasskey':
      return { pool: strangers, deadlineMs: shortDeadlineMs }
    case 'measureQueue':
      return { pool: observers, deadlineMs }
    case 'findReported':
    case 'listInbox':
    case 'listDueWebhooks':
      return { pool: reports, deadlineMs }
    default:
      return { pool: operators, deadlineMs }
  }
}

type Queries = Pick<Pool, 'query'>

/** The methods of the store that are scripts. */
export function scriptMethods(
  context: PostgresContext,
): Methods<typeof changes & typeof notes & typeof reads & typeof snapshotReads> {
  const { observers, operators, reports } = context
  const chooseWriters = (name: string): Pool =>
    observed.has(name) ? observers : reported.has(name) ? reports : operators
  const newQuery =
    (pool: Queries, deadlineMs: number): Query =>
    (text, values = []) =>
      pool.query(text, values, { deadlineMs })
  return {
    ...toMethods(changes, (name, args) =>
      chooseWriters(name).transaction((query) => runIn(context, query, bindScript(changes[name], args)), deadlineMs),
    ),
    ...toMethods(notes, (name, args) =>
      runIn(context, newQuery(chooseWriters(name), deadlineMs), bindScript(notes[name], args)),
    ),
    ...toMethods(reads, (name, args) => {
      const { pool, deadlineMs } = choosePool(name, context)
      return runIn(context, newQuery(pool, deadlineMs), bindScript(reads[name], args))
    }),
    ...toMethods(snapshotReads, (name, args) =>
      operators.transaction(async (query) => {
        await query('set transaction isolation level repeatable read read only', [])
        return runIn(context, query, bindScript(snapshotReads[name], args))
      }, deadlineMs),
    ),
    // Beside the look-ups of requests, which wait for the same locks; not beside what processes record of
    // themselves.
    probeWrite: () => runIn(context, newQuery(context.lookups, shortDeadlineMs), notes.probeWrite),
    findTokenByHash: (hash) =>
      findSecret(context, hash, (pool) =>
        runIn(context, newQuery(pool, shortDeadlineMs), (on) => reads.findTokenByHash(on, hash)),
      ),
    findSession: (hash) =>
      findSecret(context, hash, (pool) =>
        runIn(context, newQuery(pool, shortDeadlineMs), (on) => reads.findSession(on, hash)),
      ),
  }
}
