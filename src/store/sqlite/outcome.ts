/**
 * Recording what became of an email. Only the holder of the lease may: the fence tells. A finished
 * email's content is deleted in the same transaction that moves its record to the history.
 */
import type { AttemptRecord, DeliveryOutcome, FinalState } from '../../domain/delivery/outcome.ts'
import type { AppId } from '../../domain/id.ts'
import { trailMax } from '../shared/bounds.ts'
import { attemptRecord } from '../shared/records.ts'
import type { Lease } from '../store.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export type QueueRow = {
  email_id: string
  app_id: string
  type: string
  state: number
  attempts: number
  lost: number
  fence: number
  accepted_at: number
  expires_at: number
  due_at: number
  lease_until: number
  recipient: string
  trail: string
}

export function recordOutcome(tx: WriteTransaction, hold: Lease, outcome: DeliveryOutcome): boolean {
  const row = tx
    .sql('select * from queue where email_id = ? and fence = ? and state = 2')
    .get(hold.emailId, hold.fence) as QueueRow | undefined
  if (row === undefined) return false
  const record: AttemptRecord = { at: tx.nowMs, ...attemptRecord(outcome) }
  switch (outcome.kind) {
    case 'delivered':
      finish(tx, row, { state: 'delivered', reason: null, record })
      break
    case 'failed':
      finish(tx, row, { state: 'failed', reason: outcome.reason, record })
      break
    case 'expired':
      finish(tx, row, { state: 'expired', reason: null, record: null })
      break
    case 'deferred':
      wait(tx, row, { state: 1, waitMs: outcome.waitMs, attempts: row.attempts, record })
      break
    case 'unattempted':
      wait(tx, row, {
        state: outcome.waitMs > 0 ? 1 : 0,
        waitMs: outcome.waitMs,
        attempts: row.attempts - 1,
        record,
      })
      break
    default:
      outcome satisfies never
  }
  return true
}

type Wait = { state: 0 | 1; waitMs: number; attempts: number; record: AttemptRecord }

function wait(tx: WriteTransaction, row: QueueRow, next: Wait): void {
  tx.sql(
    'update queue set state = ?, due_at = ?, attempts = ?, fence = fence + 1, trail = ? where email_id = ?',
  ).run(
    next.state,
    Math.min(tx.nowMs + next.waitMs, row.expires_at),
    next.attempts,
    appendTrail(row.trail, next.record),
    row.email_id,
  )
}

type Ending = { state: FinalState; reason: string | null; record: AttemptRecord | null }

/** Moves an email to the history and wipes its content. */
export function finish(tx: WriteTransaction, row: QueueRow, ending: Ending): void {
  tx.sql('delete from queue where email_id = ?').run(row.email_id)
  tx.sql('delete from sealed where email_id = ?').run(row.email_id)
  tx.sql('insert into history values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
    row.email_id,
    row.app_id,
    row.type,
    ending.state,
    ending.reason,
    row.attempts,
    row.accepted_at,
    row.expires_at,
    tx.nowMs,
    row.recipient,
    ending.record === null ? row.trail : appendTrail(row.trail, ending.record),
  )
  tx.changeDepth(-1)
  tx.count(row.app_id as AppId, ending.state)
}

export function appendTrail(trail: string, record: AttemptRecord): string {
  const records = JSON.parse(trail) as AttemptRecord[]
  return JSON.stringify([...records.slice(-trailMax + 1), record])
}
