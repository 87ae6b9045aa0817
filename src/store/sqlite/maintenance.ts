/**
 * Maintenance in bounded steps, so that no request waits long for one: expired mail, mail of deleted
 * apps and old records are removed. Rate-limit buckets that have refilled completely, with
 * their journal, and old idempotency keys are deleted by scans of their tables, one step at a time.
 */
import { type AppId, idFloor } from '../../domain/id.ts'
import { dayMs, heldDays, idempotencyMs, keepDays, scanEveryMs, scanMax, stepMax } from '../shared/bounds.ts'
import type { Maintained } from '../store.ts'
import { cancelDeletedAppMail, cancelQueued } from './apps.ts'
import { expire } from './claim.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function maintain(tx: WriteTransaction): Maintained {
  const more = [expire(tx), cancelMailOfInactiveApps(tx), deleteOldHistory(tx), scanOldRows(tx)]
  tx.sql('delete from usage_day where day < ?').run(tx.day - keepDays)
  return { more: more.includes(true), ended: tx.takeEnded() }
}

/** Inactive: deleted, or disabled for `heldDays`. */
function cancelMailOfInactiveApps(tx: WriteTransaction): boolean {
  const inactive = tx
    .sql(
      "select app_id, status from app where status = 'deleted' or (status = 'disabled' and status_at <= ?)",
    )
    .all(tx.nowMs - heldDays * dayMs)
  const cancelled = inactive.map(({ app_id, status }) =>
    status === 'deleted' ? cancelDeletedAppMail(tx, app_id as AppId) : cancelQueued(tx, app_id as AppId),
  )
  return cancelled.some((count) => count > 0)
}

function deleteOldHistory(tx: WriteTransaction): boolean {
  const floor = idFloor('em', tx.nowMs - keepDays * dayMs)
  const statement = tx.sql(
    `delete from history where email_id in
       (select email_id from history where email_id < ? order by email_id limit ?)`,
  )
  return statement.run(floor, stepMax).changes === stepMax
}

/** One step of the scans of three tables. The scans begin together, every ten minutes. */
function scanOldRows(tx: WriteTransaction): boolean {
  const { cursors } = tx.writer
  if (cursors.rateBucket === null && cursors.bucketJournal === null && cursors.idempotency === null) {
    if (Math.abs(tx.nowMs - cursors.scanBegunAt) < scanEveryMs) return false
    cursors.scanBegunAt = tx.nowMs
    cursors.rateBucket = 0
    cursors.bucketJournal = 0
    cursors.idempotency = ''
  }
  const idempotencyBefore = tx.nowMs - idempotencyMs
  cursors.rateBucket = scanStep(tx, bucketScan, { before: tx.nowUs, after: cursors.rateBucket })
  cursors.bucketJournal = scanStep(tx, journalScan, { before: tx.nowUs, after: cursors.bucketJournal })
  cursors.idempotency = scanStep(tx, idempotencyScan, {
    before: idempotencyBefore,
    after: cursors.idempotency,
  })
  return cursors.rateBucket !== null || cursors.bucketJournal !== null || cursors.idempotency !== null
}

type Scan = { readonly table: string; readonly key: string; readonly time: string }

const bucketScan: Scan = { table: 'rate_bucket', key: 'bucket', time: 'arrival_us' }
const journalScan: Scan = { table: 'bucket_journal', key: 'id', time: 'until_us' }
const idempotencyScan: Scan = { table: 'idempotency', key: 'request_key', time: 'created_at' }

/** Deletes the old rows of one step. Returns where the next step begins, null at the end of the table. */
function scanStep<Key extends string | number>(
  tx: WriteTransaction,
  { table, key, time }: Scan,
  { before, after }: { before: number; after: Key | null },
): Key | null {
  if (after === null) return null
  const row = tx
    .sql(`select ${key} as last from ${table} where ${key} > ? order by ${key} limit 1 offset ?`)
    .get(after, scanMax - 1)
  const last = (row?.last ?? null) as Key | null
  // A tilde is greater than every key: than all characters of a hash, and, as text, than all numbers.
  tx.sql(`delete from ${table} where ${key} > ? and ${key} <= ? and ${time} < ?`).run(
    after,
    last ?? '~',
    before,
  )
  return last
}
