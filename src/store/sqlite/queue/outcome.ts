/**
 * Recording the outcome of an attempt. Only the worker with the current fence may. The transaction
 * that ends an email moves its record to the history and deletes its content.
 */

import { trailMax } from '../../../domain/bounds.ts'
import type { AttemptRecord, DeliveryOutcome } from '../../../domain/delivery/outcome.ts'
import type { EndedEmail, EndReason, EndState, FinalState, LiveState } from '../../../domain/delivery/states.ts'
import type { AppId } from '../../../domain/id.ts'
import { attemptRecord, type Ending, toEnding } from '../../shared/endings.ts'
import type { ClaimRow } from '../../shared/rows.ts'
import { type Lease, leaseMs } from '../../store.ts'
import type { WriteTransaction } from './write-transaction.ts'

export type QueueRow = ClaimRow & {
  readonly key_id: string | null
  readonly state: LiveState
  readonly due_at: number
  readonly wanted_at: number
  readonly lease_until: number
  readonly recipient: string
  readonly trail: string
  readonly sealed: Uint8Array
}

export function recordOutcome(tx: WriteTransaction, lease: Lease, outcome: DeliveryOutcome): boolean {
  const ending = toEnding(outcome)
  const isLeased = "email_id = ? and fence = ? and state = 'sending'"
  const taken =
    ending.final === null ? `select * from queue where ${isLeased}` : `delete from queue where ${isLeased} returning *`
  const row = tx.sql(taken).get(lease.emailId, lease.fence) as QueueRow | undefined
  if (row === undefined) return false
  const line = attemptRecord(outcome)
  const record = line === null ? null : { at: tx.nowMs, ...line }
  if (ending.final !== null) keepRecord(tx, row, { state: ending.final, reason: ending.reason, record })
  else requeue(tx, row, { ...ending, record })
  return true
}

type Requeue = Extract<Ending, { final: null }> & { readonly record: AttemptRecord | null }

function requeue(tx: WriteTransaction, row: QueueRow, requeued: Requeue): void {
  const { waitMs, givenBack, missingKey, record } = requeued
  const dueAt = Math.min(tx.nowMs + waitMs, row.expires_at)
  tx.sql(
    `update queue set state = ?, due_at = ?, wanted_at = ?, attempts = ?, fence = fence + 1, trail = ?,
       missing_key = ? where email_id = ?`,
  ).run(
    givenBack && waitMs === 0 ? 'queued' : 'deferred',
    dueAt,
    givenBack ? row.wanted_at : dueAt,
    givenBack ? row.attempts - 1 : row.attempts,
    appendTrail(row.trail, record),
    missingKey,
    row.email_id,
  )
}

type End<State extends FinalState = EndState> = { state: State; reason: EndReason | null; record: AttemptRecord | null }

/** Moves an email to the history and deletes its content. */
export function finish(tx: WriteTransaction, row: QueueRow, end: End): EndedEmail {
  tx.sql('delete from queue where email_id = ?').run(row.email_id)
  keepRecord(tx, row, end)
  return { emailId: row.email_id, appId: row.app_id, state: end.state, reason: end.reason }
}

/** Writes the record of an email that has left the queue. */
function keepRecord(tx: WriteTransaction, row: QueueRow, end: End<FinalState>): void {
  tx.sql(
    `insert into history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at,
       expires_at, finished_at, recipient, trail, traceparent) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    row.email_id,
    row.app_id,
    row.key_id,
    row.type,
    end.state,
    end.reason,
    row.attempts,
    row.lost_leases,
    row.accepted_at,
    row.expires_at,
    tx.nowMs,
    row.recipient,
    appendTrail(row.trail, end.record),
    row.traceparent,
  )
  tx.changeDepth(-1)
  tx.count(row.app_id as AppId, end.state)
}

export function appendTrail(trail: string, record: AttemptRecord | null): string {
  if (record === null) return trail
  const records = JSON.parse(trail) as AttemptRecord[]
  return JSON.stringify([...records.slice(-trailMax + 1), record])
}

/** The leases that could not be renewed: they are lost. */
export function renewLeases(tx: WriteTransaction, leases: readonly Lease[]): Lease[] {
  const statement = tx.sql("update queue set lease_until = ? where email_id = ? and fence = ? and state = 'sending'")
  const untilMs = tx.nowMs + leaseMs
  return leases.filter(({ emailId, fence }) => statement.run(untilMs, emailId, fence).changes === 0)
}
