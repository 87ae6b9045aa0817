/** An operator's changes of single emails. */
import { type LiveState, suspectAfter } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { scanMax } from '../shared/bounds.ts'
import type { EmailChange, RetryStep } from '../store.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
import { finish } from './outcome.ts'

const deadlineMs = 10_000

export const retryEmail = (
  { clock, operators, schema }: PostgresContext,
  id: EmailId,
): Promise<EmailChange> =>
  operators.transaction(async (query) => {
    const state = await lockQueued(query, schema, id)
    if (state === 'queued') return 'not_deferred'
    if (state !== 'deferred') return state
    const now = clockMs('$2')
    const text = `update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = ${now} where email_id = $1`
    await query(text, [id, clock.offsetMs])
    return 'done'
  }, deadlineMs)

export async function retryDeferred(
  { clock, operators, schema }: PostgresContext,
  app: AppId | null,
  after: EmailId | null,
): Promise<RetryStep> {
  const now = clockMs('$1')
  // `state` is written so that no partial index seems to fit: queue_deferred would be read whole at each step.
  const text = `with last as (
      select email_id from ${schema}.queue where email_id > $3 order by email_id limit 1 offset $4),
    chosen as materialized (
      select email_id from ${schema}.queue
      where email_id > $3 and email_id <= coalesce((select email_id from last), '~')
        and state not in ('queued', 'sending') and lost_leases < ${suspectAfter} and ($2::text is null or app_id = $2)
      for update skip locked),
    retried as (
      update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = ${now}
      where email_id = any(array(select email_id from chosen)) returning 1)
    select (select count(*) from retried) as retried, (select email_id from last) as next`
  const [row] = await operators.query(text, [clock.offsetMs, app, after ?? '', scanMax - 1], { deadlineMs })
  return { retried: Number(row?.retried), next: (row?.next ?? null) as EmailId | null }
}

export const cancelEmail = (
  { clock, operators, schema, slot }: PostgresContext,
  id: EmailId,
): Promise<EmailChange> =>
  operators.transaction(async (query) => {
    const state = await lockQueued(query, schema, id)
    if (state !== 'queued' && state !== 'deferred') return state
    const text = `select ${schema}.${finish.name}($1, ${clockMs('$2')}, array[$3], '{cancelled}', '{by_operator}', '{null}')`
    await query(text, [slot, clock.offsetMs, id])
    return 'done'
  }, deadlineMs)

async function lockQueued(
  query: Query,
  schema: string,
  id: EmailId,
): Promise<LiveState | 'finished' | 'not_found'> {
  const [row] = await query<{ state: LiveState }>(
    `select state from ${schema}.queue where email_id = $1 for update`,
    [id],
  )
  if (row !== undefined) return row.state
  const finished = await query(`select from ${schema}.history where email_id = $1`, [id])
  return finished.length === 0 ? 'not_found' : 'finished'
}
