/** An operator's changes of single emails. */

import { stepMax } from '../../../domain/bounds.ts'
import { type LiveState, suspectAfter } from '../../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../../domain/id.ts'
import type { Action, Actor } from '../../../domain/operator/audit.ts'
import type { EmailChange, RetryStep } from '../../operator-store.ts'
import { recordAction } from '../../scripts/audit.ts'
import { allRetried, emailChanged } from '../../scripts/emails.ts'
import type { Query } from '../engine/connection.ts'
import type { PostgresContext } from '../engine/context.ts'
import { runIn } from '../engine/run-script.ts'
import { clockMs } from './functions.ts'
import { finish } from './outcome.ts'

const deadlineMs = 10_000

export const retryEmail = (context: PostgresContext, id: EmailId, actor: Actor): Promise<EmailChange> =>
  context.operators.transaction(async (query) => {
    const { clock, schema } = context
    const locked = await lockQueued(query, schema, id)
    if (typeof locked === 'string') return locked
    const { app, state } = locked
    if (state === 'sending') return 'sending'
    if (state === 'queued') return 'not_deferred'
    const now = clockMs('$2')
    const text = `update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = least(wanted_at, ${now}) where email_id = $1`
    await query(text, [id, clock.offsetMs])
    await record(context, query, emailChanged('email.retry', { id, app, state }), actor)
    return 'done'
  }, deadlineMs)

export const retryDeferred = (
  context: PostgresContext,
  apps: readonly AppId[] | null,
  after: EmailId | null,
  actor: Actor | null,
): Promise<RetryStep> =>
  context.operators.transaction(async (query) => {
    const step = await retryStep(query, context, { apps, after })
    if (step.retried > 0 && actor !== null) await record(context, query, allRetried(apps), actor)
    return step
  }, deadlineMs)

async function retryStep(
  query: Query,
  { clock, schema }: PostgresContext,
  { apps, after }: { apps: readonly AppId[] | null; after: EmailId | null },
): Promise<RetryStep> {
  const now = clockMs('$1')
  // `state` is written so that no partial index seems to fit: queue_deferred would be read whole at each
  // step.
  const text = `with last as (
      select email_id from ${schema}.queue where email_id > $3 order by email_id limit 1 offset $4),
    chosen as materialized (
      select email_id from ${schema}.queue
      where email_id > $3 and email_id <= coalesce((select email_id from last), '~')
        and state not in ('queued', 'sending') and lost_leases < ${suspectAfter} and ($2::text[] is null or app_id = any($2))
      for update skip locked),
    retried as (
      update ${schema}.queue set state = 'queued', due_at = ${now}, wanted_at = least(wanted_at, ${now})
      where email_id = any(array(select email_id from chosen)) returning 1)
    select (select count(*) from retried) as retried, (select email_id from last) as next`
  const [row] = await query(text, [clock.offsetMs, apps, after ?? '', stepMax - 1])
  return { retried: Number(row?.retried), next: (row?.next ?? null) as EmailId | null }
}

export const cancelEmail = (context: PostgresContext, id: EmailId, actor: Actor): Promise<EmailChange> =>
  context.operators.transaction(async (query) => {
    const { clock, schema, slot } = context
    const locked = await lockQueued(query, schema, id)
    if (typeof locked === 'string') return locked
    const { app, state } = locked
    if (state === 'sending') return 'sending'
    const text = `select ${schema}.${finish.name}($1, ${clockMs('$2')}, array[$3], '{cancelled}', '{by_operator}', '{null}')`
    await query(text, [slot, clock.offsetMs, id])
    await record(context, query, emailChanged('email.cancel', { id, app, state }), actor)
    return 'done'
  }, deadlineMs)

async function lockQueued(
  query: Query,
  schema: string,
  id: EmailId,
): Promise<{ app: AppId; state: LiveState } | 'finished' | 'not_found'> {
  const [row] = await query<{ app: AppId; state: LiveState }>(
    `select app_id as app, state from ${schema}.queue where email_id = $1 for update`,
    [id],
  )
  if (row !== undefined) return row
  const finished = await query(`select from ${schema}.history where email_id = $1`, [id])
  return finished.length === 0 ? 'not_found' : 'finished'
}

const record = (context: PostgresContext, query: Query, action: Action, actor: Actor): Promise<void> =>
  runIn(context, query, (on) => recordAction(on, action, actor))
