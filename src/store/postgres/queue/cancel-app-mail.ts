/** Cancels the mail of apps that are deleted, or have been disabled for long. */

import { stepMax } from '../../../domain/bounds.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import type { AppId } from '../../../domain/id.ts'
import { hasNoRecords } from '../../scripts/retention.ts'
import { isInactive, queueParts } from '../../shared/queue-parts.ts'
import type { PostgresContext } from '../engine/context.ts'
import { clockMs } from './functions.ts'
import { endChosen } from './outcome.ts'

const deadlineMs = 10_000

/**
 * Mail that a worker holds may be at its relay already: it ends by its outcome, or is cancelled when it comes
 * back. The app stays until then. A step may miss mail that a claim is taking at this time; the next step
 * finds it.
 */
export async function cancelDeletedAppMail(context: PostgresContext, id: AppId): Promise<EndedEmail[]> {
  const queued = await cancelQueued(context, id)
  if (queued.length > 0) return queued
  const deferred = await cancel(context, id, queueParts.deferred)
  if (deferred.length > 0) return deferred
  const { maintenance, schema } = context
  const text = `with removed as (delete from ${schema}.app where app_id = $1 and status = 'deleted'
      and not exists (select from ${schema}.queue where app_id = $1) and ${hasNoRecords(`${schema}.`)}
      returning app_id)
    delete from ${schema}.app_lock using removed where app_lock.app_id = removed.app_id`
  await maintenance.query(text, [id], { deadlineMs })
  return []
}

/** One step of cancelling queued mail: first what is ready, then suspects. Each has an index. */
export async function cancelQueued(context: PostgresContext, id: AppId): Promise<EndedEmail[]> {
  const ready = await cancel(context, id, queueParts.ready)
  return ready.length > 0 ? ready : cancel(context, id, queueParts.suspect)
}

/** Checks in the same statement that the app is deleted, or has been disabled for `heldDays`. */
function cancel(context: PostgresContext, id: AppId, where: string): Promise<EndedEmail[]> {
  const { schema } = context
  const chosen = `select email_id, app_id from ${schema}.queue where app_id = $2 and ${where} and exists (
      select from ${schema}.app where app_id = $2 and ${isInactive(clockMs('$1'))})
    order by email_id limit ${stepMax} for update skip locked`
  return endChosen(context, { chosen, values: [id], state: 'cancelled', reason: 'app_inactive' }, deadlineMs)
}
