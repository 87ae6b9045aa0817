/** Cancels the mail of apps that are deleted, or have been disabled for long. */

import { stepMax } from '../../../domain/bounds.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import type { AppId } from '../../../domain/id.ts'
import { hasNoRecords } from '../../scripts/retention.ts'
import { isInactive, queueParts } from '../../shared/queue-parts.ts'
import { finish, type QueueRow } from './outcome.ts'
import type { WriteTransaction } from './write-transaction.ts'

/** One step for an app that is deleted, or has been disabled for `heldDays`; nothing for every other app. */
export function cancelDeletedAppMail(tx: WriteTransaction, id: AppId): EndedEmail[] {
  const inactive = tx.sql(`select 1 from app where app_id = ? and ${isInactive('?')}`).get(id, tx.nowMs)
  if (inactive === undefined) return []
  const queued = cancelQueued(tx, id)
  if (queued.length > 0) return queued
  const deferred = cancelPart(tx, id, queueParts.deferred)
  if (deferred.length === 0 && !isSending(tx, id)) {
    tx.sql(`delete from app where app_id = $1 and status = 'deleted' and ${hasNoRecords('')}`).run({ $1: id })
    tx.clearCaches()
  }
  return deferred
}

/**
 * Mail that a worker holds may be at its relay already: it ends by its outcome, or is cancelled when it comes
 * back.
 */
const isSending = (tx: WriteTransaction, id: AppId): boolean =>
  tx.sql(`select 1 from queue where ${queueParts.sending} and app_id = ? limit 1`).get(id) !== undefined

/** One step of cancelling queued mail: first what is ready, then suspects. */
export function cancelQueued(tx: WriteTransaction, id: AppId): EndedEmail[] {
  const ready = cancelPart(tx, id, queueParts.ready)
  return ready.length > 0 ? ready : cancelPart(tx, id, queueParts.suspect)
}

/** `part`: a condition with an index. */
function cancelPart(tx: WriteTransaction, id: AppId, part: string): EndedEmail[] {
  const text = `select * from queue where ${part} and app_id = ? order by email_id limit ?`
  const rows = tx.sql(text).all(id, stepMax) as QueueRow[]
  return rows.map((row) => finish(tx, row, { state: 'cancelled', reason: 'app_inactive', record: null }))
}
