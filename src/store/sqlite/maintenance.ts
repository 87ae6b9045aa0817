/**
 * Upkeep in bounded steps, so that none of it ever stands in the way of a request: what has been
 * kept long enough goes, mail of apps that are gone is cancelled, and buckets that say no more
 * than an absent one are dropped in a slow pass over their table.
 */
import { type AppId, idFloor } from '../../domain/id.ts'
import { heldDays, idempotencyMs, keepDays, passEveryMs, passMax, stepMax } from '../shared/bounds.ts'
import { cancelDeletedAppMail, cancelReady } from './admin.ts'
import { expire } from './claim.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

const dayMs = 86_400_000

/** True while there is more to do now. */
export function maintain(tx: WriteTransaction): boolean {
  const more = [expire(tx), cancelGoneApps(tx), dropHistory(tx), passOver(tx)]
  tx.sql('delete from usage_day where day < ?').run(tx.day - keepDays)
  return more.includes(true)
}

function cancelGoneApps(tx: WriteTransaction): boolean {
  const gone = tx
    .sql(
      "select app_id, status from app where status = 'deleted' or (status = 'disabled' and status_at <= ?)",
    )
    .all(tx.nowMs - heldDays * dayMs)
  const cancelled = gone.map(({ app_id, status }) =>
    status === 'deleted' ? cancelDeletedAppMail(tx, app_id as AppId) : cancelReady(tx, app_id as string),
  )
  return cancelled.some((count) => count > 0)
}

function dropHistory(tx: WriteTransaction): boolean {
  const floor = idFloor('em', tx.nowMs - keepDays * dayMs)
  const statement = tx.sql(
    'delete from history where email_id in (select email_id from history where email_id < ? order by email_id limit ?)',
  )
  return statement.run(floor, stepMax).changes === stepMax
}

/** One page of the pass over each of two tables of keyed hashes; a pass begins every ten minutes. */
function passOver(tx: WriteTransaction): boolean {
  const { cursors } = tx.writer
  if (cursors.rate === null && cursors.idempotency === null) {
    if (Math.abs(tx.nowMs - cursors.passBegunAt) < passEveryMs) return false
    cursors.passBegunAt = tx.nowMs
    cursors.rate = ''
    cursors.idempotency = ''
  }
  cursors.rate = dropPage(tx, { table: 'rate', column: 'tat', below: tx.nowUs, after: cursors.rate })
  const below = tx.nowMs - idempotencyMs
  cursors.idempotency = dropPage(tx, {
    table: 'idempotency',
    column: 'at',
    below,
    after: cursors.idempotency,
  })
  return cursors.rate !== null || cursors.idempotency !== null
}

type Page = { table: 'rate' | 'idempotency'; column: string; below: number; after: string | null }

/** Deletes what is stale in one page of a table; where the next page begins, null at the end. */
function dropPage(tx: WriteTransaction, { table, column, below, after }: Page): string | null {
  if (after === null) return null
  const last = tx
    .sql(`select k from ${table} where k > ? order by k limit 1 offset ?`)
    .get(after, passMax - 1)?.k
  const until = last === undefined ? '~' : String(last)
  tx.sql(`delete from ${table} where k > ? and k <= ? and ${column} < ?`).run(after, until, below)
  return last === undefined ? null : until
}
