/**
 * Maintenance in bounded steps, so that no request waits long for one: expired mail, mail of deleted
 * apps and old records are removed. Rate-limit buckets that have refilled completely, with
 * their journal, and old idempotency keys are deleted by scans of their tables, one step at a time.
 */

import {
  activityDays,
  appMinutesKept,
  auditDays,
  heldDays,
  idempotencyMs,
  keepDays,
  scanEveryMs,
  scanMax,
  stepMax,
} from '../../../domain/bounds.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import { dayMs, minuteMs } from '../../../domain/duration.ts'
import { type AppId, idFloor } from '../../../domain/id.ts'
import type { Maintained } from '../../store.ts'
import type { WriteTransaction } from '../engine/threads/write-transaction.ts'
import { cancelDeletedAppMail, cancelQueued } from './cancel-app-mail.ts'
import { expire } from './claim.ts'

export function maintain(tx: WriteTransaction): Maintained {
  const expired = expire(tx)
  const cancelled = cancelMailOfInactiveApps(tx)
  const more = [
    expired.length === stepMax,
    cancelled.length > 0,
    deleteOldHistory(tx),
    deleteOldActivity(tx),
    scanOldRows(tx),
  ]
  return { more: more.includes(true), ended: [...expired, ...cancelled] }
}

/** Inactive: deleted, or disabled for `heldDays`. */
function cancelMailOfInactiveApps(tx: WriteTransaction): EndedEmail[] {
  const inactive = tx
    .sql(
      `select app_id, status from app where status <> 'active'
         and (status = 'deleted' or (status = 'disabled' and status_at <= ?))`,
    )
    .all(tx.nowMs - heldDays * dayMs)
  return inactive.flatMap(({ app_id, status }) =>
    status === 'deleted' ? cancelDeletedAppMail(tx, app_id as AppId) : cancelQueued(tx, app_id as AppId),
  )
}

function deleteOldHistory(tx: WriteTransaction): boolean {
  const floor = idFloor('em', tx.nowMs - keepDays * dayMs)
  const statement = tx.sql(
    `delete from history where email_id in
       (select email_id from history where email_id < ? order by email_id limit ?)`,
  )
  return statement.run(floor, stepMax).changes === stepMax
}

function deleteOldActivity(tx: WriteTransaction): boolean {
  const minute = Math.floor(tx.nowMs / minuteMs)
  const isFull = (condition: string, floor: number): boolean => {
    const statement = tx.sql(
      `delete from activity where (app_id, span, minute, event) in
         (select app_id, span, minute, event from activity where ${condition} order by minute limit ?)`,
    )
    return statement.run(floor, stepMax).changes === stepMax
  }
  const isRecentFull = isFull("span = 1 and app_id <> '' and minute < ?", minute - appMinutesKept)
  return isFull('minute < ?', minute - (activityDays * dayMs) / minuteMs) || isRecentFull
}

function deleteOldRecords(tx: WriteTransaction): void {
  tx.sql('delete from usage_day where day < ?').run(tx.day - keepDays)
  tx.sql('delete from refusal where request_id < ?').run(idFloor('req', tx.nowMs - keepDays * dayMs))
  tx.sql('delete from audit where audit_id < ?').run(idFloor('au', tx.nowMs - auditDays * dayMs))
}

/** Keys that have ended are kept as long as records name them. */
function deleteEndedKeys(tx: WriteTransaction): void {
  const floor = tx.nowMs - keepDays * dayMs
  const { changes } = tx
    .sql('delete from delivery_key where revoked_at < ? or expires_at < ?')
    .run(floor, floor)
  if (changes > 0) tx.clearCaches()
}

type Scan = {
  readonly table: string
  readonly key: string
  readonly time: string
  /** Before the first key. */
  readonly first: string | number
  /** Rows whose `time` is before this are old. */
  readonly before: (tx: WriteTransaction) => number
}

const scans: readonly Scan[] = [
  { table: 'rate_bucket', key: 'bucket', time: 'arrival_us', first: 0, before: (tx) => tx.nowUs },
  { table: 'bucket_journal', key: 'id', time: 'until_us', first: 0, before: (tx) => tx.nowUs },
  {
    table: 'idempotency',
    key: 'request_key',
    time: 'created_at',
    first: '',
    before: (tx) => tx.nowMs - idempotencyMs,
  },
]

/**
 * One step of each scan. The scans begin together, every ten minutes, after tables of which little is old.
 */
function scanOldRows(tx: WriteTransaction): boolean {
  const { cursors } = tx.writer
  if (cursors.scans === null) {
    if (Math.abs(tx.nowMs - cursors.scanBegunAt) < scanEveryMs) return false
    cursors.scanBegunAt = tx.nowMs
    deleteOldRecords(tx)
    deleteEndedKeys(tx)
    cursors.scans = scans.map(({ first }) => first)
  }
  const next = scans.map((scan, n) => scanStep(tx, scan, cursors.scans?.[n] ?? null))
  cursors.scans = next.some((key) => key !== null) ? next : null
  return cursors.scans !== null
}

/** Deletes the old rows of one step. Returns where the next step begins, null at the end of the table. */
function scanStep(
  tx: WriteTransaction,
  { table, key, time, before }: Scan,
  after: string | number | null,
): string | number | null {
  if (after === null) return null
  const row = tx
    .sql(`select ${key} as last from ${table} where ${key} > ? order by ${key} limit 1 offset ?`)
    .get(after, scanMax - 1)
  const last = (row?.last ?? null) as string | number | null // the key of one of these tables
  // A tilde is greater than every key: than all characters of a hash, and, as text, than all numbers.
  const statement = tx.sql(`delete from ${table} where ${key} > ? and ${key} <= ? and ${time} < ?`)
  statement.run(after, last ?? '~', before(tx))
  return last
}
