/** An operator's changes of emails. */

import { stepMax } from '../../../domain/bounds.ts'
import { suspectAfter } from '../../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../../domain/id.ts'
import type { Action, Actor } from '../../../domain/operator/audit.ts'
import type { EmailChange, RetryStep } from '../../operator-store.ts'
import { recordAction } from '../../scripts/audit.ts'
import { allRetried, emailChanged } from '../../scripts/emails.ts'
import { runOn } from '../engine/run-script.ts'
import { finish, type QueueRow } from './outcome.ts'
import type { WriteTransaction } from './write-transaction.ts'

export function retryEmail(tx: WriteTransaction, id: EmailId, actor: Actor): EmailChange {
  const row = findQueued(tx, id)
  if (typeof row === 'string') return row
  if (row.state === 'sending') return 'sending'
  if (row.state === 'queued') return 'not_deferred'
  tx.sql("update queue set state = 'queued', due_at = ?1, wanted_at = min(wanted_at, ?1) where email_id = ?2").run(
    tx.nowMs,
    id,
  )
  record(tx, emailChanged('email.retry', { id, app: row.app_id, state: row.state }), actor)
  return 'done'
}

export function retryDeferred(
  tx: WriteTransaction,
  apps: readonly AppId[] | null,
  after: EmailId | null,
  actor: Actor | null,
): RetryStep {
  const row = tx
    .sql('select email_id from queue where email_id > ? order by email_id limit 1 offset ?')
    .get(after ?? '', stepMax - 1)
  const next = (row?.email_id ?? null) as EmailId | null
  const ofApps = apps === null ? '' : 'and app_id in (select value from json_each(?4))'
  const { changes } = tx
    .sql(
      `update queue set state = 'queued', due_at = ?1, wanted_at = min(wanted_at, ?1)
       where email_id > ?2 and email_id <= ?3 and state = 'deferred'
         and lost_leases < ${suspectAfter} ${ofApps}`,
    )
    .run(
      ...[tx.nowMs, after ?? '', next ?? '~'], // a tilde is greater than every id
      ...(apps === null ? [] : [JSON.stringify(apps)]),
    )
  const retried = Number(changes)
  if (retried > 0 && actor !== null) record(tx, allRetried(apps), actor)
  return { retried, next }
}

export function cancelEmail(tx: WriteTransaction, id: EmailId, actor: Actor): EmailChange {
  const row = findQueued(tx, id)
  if (typeof row === 'string') return row
  if (row.state === 'sending') return 'sending'
  finish(tx, row, { state: 'cancelled', reason: 'by_operator', record: null })
  record(tx, emailChanged('email.cancel', { id, app: row.app_id, state: row.state }), actor)
  return 'done'
}

function findQueued(tx: WriteTransaction, id: EmailId): QueueRow | 'finished' | 'not_found' {
  const row = tx.sql('select * from queue where email_id = ?').get(id) as QueueRow | undefined
  if (row !== undefined) return row
  return tx.sql('select 1 from history where email_id = ?').get(id) === undefined ? 'not_found' : 'finished'
}

const record = (tx: WriteTransaction, action: Action, actor: Actor): void =>
  runOn(tx, (context) => recordAction(context, action, actor))
