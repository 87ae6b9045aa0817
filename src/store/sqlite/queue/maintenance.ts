/**
 * Maintenance in bounded steps, so that no request waits long for one: expired mail, mail of deleted
 * apps and old records are removed. Rate-limit buckets that have refilled completely, with
 * their journal, and old idempotency keys are deleted by scans of their tables, one step at a time.
 */

import { idempotencyMs, scanEveryMs, scanMax, stepMax } from '../../../domain/bounds.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import type { AppId } from '../../../domain/id.ts'
import { markMissingKeys } from '../../scripts/missing-keys.ts'
import { deleteAppRecords, deleteOldActivity, deleteOldHistory, deleteOldRecords } from '../../scripts/retention.ts'
import { isInactive } from '../../shared/queue-parts.ts'
import type { Maintained } from '../../store.ts'
import { runOn } from '../engine/run-script.ts'
import { cancelDeletedAppMail, cancelQueued } from './cancel-app-mail.ts'
import { expire } from './claim.ts'
import type { WriteTransaction } from './write-transaction.ts'

export function maintain(tx: WriteTransaction): Maintained {
  const expired = expire(tx)
  const cancelled = cancelMailOfInactiveApps(tx)
  const more = [
    expired.length === stepMax,
    cancelled.length > 0,
    runOn(tx, deleteOldHistory),
    runOn(tx, deleteOldActivity),
    runOn(tx, deleteAppRecords),
    scanOldRows(tx),
    findMissingKeys(tx),
  ]
  return { more: more.includes(true), ended: [...expired, ...cancelled] }
}

function cancelMailOfInactiveApps(tx: WriteTransaction): EndedEmail[] {
  const inactive = tx.sql(`select app_id, status from app where ${isInactive('?')}`).all(tx.nowMs)
  return inactive.flatMap(({ app_id, status }) =>
    status === 'deleted' ? cancelDeletedAppMail(tx, app_id as AppId) : cancelQueued(tx, app_id as AppId),
  )
}

/** Once after the start, if the ring lacks a key that the database was used with. */
function findMissingKeys(tx: WriteTransaction): boolean {
  const { cursors, ring } = tx.writer
  const after = cursors.missingKeys
  if (after === null) return false
  cursors.missingKeys = runOn(tx, (context) => markMissingKeys(context, ring, after))
  return cursors.missingKeys !== null
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
 * One step of each scan, and of what is old in other tables. All begin together, every ten minutes.
 */
function scanOldRows(tx: WriteTransaction): boolean {
  const { cursors } = tx.writer
  if (cursors.scans === null) {
    if (Math.abs(tx.nowMs - cursors.scanBegunAt) < scanEveryMs) return false
    cursors.scanBegunAt = tx.nowMs
    cursors.scans = scans.map(({ first }) => first)
  }
  const next = scans.map((scan, n) => scanStep(tx, scan, cursors.scans?.[n] ?? null))
  const more = runOn(tx, deleteOldRecords) || next.some((key) => key !== null)
  cursors.scans = more ? next : null
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
