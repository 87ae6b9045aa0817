/** Audit entries, in the transaction of the change that they record. */
import type { Actor, Change } from '../../domain/audit.ts'
import { newId } from '../../domain/id.ts'
import { auditColumns } from '../shared/records.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

const deadlineMs = 10_000

/** A transaction of an operator: its statements, and `record` for the entry of its change. */
export type Changing = {
  readonly query: Query
  readonly record: (change: Change) => Promise<void>
}

/** Runs a change and its audit entry as one transaction. */
export const change = <T>(
  context: PostgresContext,
  actor: Actor,
  work: (changing: Changing) => Promise<T>,
): Promise<T> =>
  context.operators.transaction(async (query) => {
    const record = (entry: Change) => insertEntry(query, context, { entry, actor })
    return work({ query, record })
  }, deadlineMs)

export const recordAction = (context: PostgresContext, entry: Change, actor: Actor): Promise<void> =>
  change(context, actor, ({ record }) => record(entry))

export async function insertEntry(
  query: Query,
  { clock, schema }: PostgresContext,
  { entry, actor }: { entry: Change; actor: Actor },
): Promise<void> {
  const columns = auditColumns(entry, actor)
  const names = Object.keys(columns)
  const places = names.map((_, index) => `$${index + 3}`)
  const text = `insert into ${schema}.audit (audit_id, at, ${names.join(', ')})
    values ($1, ${clockMs('$2')}, ${places.join(', ')})`
  await query(text, [newId('au', clock.nowMs()), clock.offsetMs, ...Object.values(columns)])
}
