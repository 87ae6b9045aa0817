/** Audit entries, in the transaction of the change that they record. */
import type { Action, Actor } from '../../domain/audit.ts'
import { newId } from '../../domain/id.ts'
import { auditColumns } from '../shared/records.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

const deadlineMs = 10_000

/** A transaction of an operator: its statements, and `record` for the entry of its change. */
export type Audited = {
  readonly query: Query
  readonly record: (action: Action) => Promise<void>
}

/** Runs a change and its audit entry as one transaction. */
export const withAudit = <T>(
  context: PostgresContext,
  actor: Actor,
  work: (audited: Audited) => Promise<T>,
): Promise<T> =>
  context.operators.transaction(async (query) => {
    const record = (action: Action) => insertEntry(query, context, { action, actor })
    return work({ query, record })
  }, deadlineMs)

export const recordAction = (context: PostgresContext, action: Action, actor: Actor): Promise<void> =>
  withAudit(context, actor, ({ record }) => record(action))

export async function insertEntry(
  query: Query,
  { clock, schema }: PostgresContext,
  { action, actor }: { action: Action; actor: Actor },
): Promise<void> {
  const columns = auditColumns(action, actor)
  const names = Object.keys(columns)
  const places = names.map((_, index) => `$${index + 3}`)
  const text = `insert into ${schema}.audit (audit_id, at, ${names.join(', ')})
    values ($1, ${clockMs('$2')}, ${places.join(', ')})`
  await query(text, [newId('au', clock.nowMs()), clock.offsetMs, ...Object.values(columns)])
}
