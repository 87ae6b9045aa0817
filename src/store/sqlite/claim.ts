/**
 * Handing out due mail. Before any is claimed, what has expired leaves, lapsed leases return and
 * deferred mail that is due becomes ready, each in bounded steps. Apps with ready mail take turns,
 * found by hopping over the index, so one app's million costs another's email nothing.
 */
import type { App } from '../../domain/app/app.ts'
import type { AttemptRecord, EmailContent } from '../../domain/delivery/outcome.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { KeyMissing, unseal } from '../crypto/key-ring.ts'
import { appsPerClaim, lostMax, stepMax, unreadableWaitMs, waitMaxMs } from '../shared/bounds.ts'
import { type Claim, type Claimed, type ClaimRequest, type Lease, leaseMs } from '../store.ts'
import { appendTrail, finish, type QueueRow, recordOutcome } from './outcome.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function claimDue(tx: WriteTransaction, request: ClaimRequest): Claimed {
  keepHeld(tx, request.leases)
  expire(tx)
  recoverLapsed(tx)
  promoteDeferred(tx)
  const suspect = findSuspect(tx)
  const ids = mayTrySuspect(tx, request) && suspect !== null ? [suspect] : pickInTurns(tx, request)
  const claims = ids.flatMap((id) => lease(tx, id))
  tx.writer.cursors.suspectLast = claims.some((claim) => claim.alone)
  const apps = new Map<AppId, App>()
  for (const { appId } of claims) {
    const app = tx.app(appId)
    if (app !== null) apps.set(appId, app)
  }
  return { claims, apps, suspects: suspect !== null && request.leases.length > 0 }
}

/** Ordinary mail goes between two suspects, so that many of them hold nobody up. */
const mayTrySuspect = (tx: WriteTransaction, request: ClaimRequest): boolean =>
  request.leases.length === 0 && !(tx.writer.cursors.suspectLast && appsWithReadyMail(tx).length > 0)

/** What its own worker still holds has not lapsed, also after a pause of the process or a clock step. */
function keepHeld(tx: WriteTransaction, leases: ClaimRequest['leases']): void {
  for (const { emailId, fence } of leases) {
    tx.sql(
      `update queue set lease_until = ? where email_id = ? and fence = ? and state = 2
         and (lease_until < ? or lease_until > ?)`,
    ).run(tx.nowMs + leaseMs, emailId, fence, tx.nowMs + leaseMs / 2, tx.nowMs + leaseMs)
  }
}

/** One step; true where there may be more. */
export function expire(tx: WriteTransaction): boolean {
  const rows = tx
    .sql('select * from queue where expires_at <= ? and state in (0, 1) order by expires_at limit ?')
    .all(tx.nowMs, stepMax)
  for (const row of rows) finish(tx, row as QueueRow, { state: 'expired', reason: null, record: null })
  return rows.length === stepMax
}

// A lease or a wait much longer than any that is given was written before the clock stepped back.
function recoverLapsed(tx: WriteTransaction): void {
  const rows = tx
    .sql('select * from queue where state = 2 and (lease_until <= ? or lease_until > ?) limit ?')
    .all(tx.nowMs, tx.nowMs + 2 * leaseMs, stepMax)
  for (const row of rows as QueueRow[]) {
    const record: AttemptRecord = { at: tx.nowMs, outcome: 'lost' }
    if (row.lost + 1 >= lostMax) {
      finish(tx, row, { state: 'failed', reason: 'workers_lost', record })
      continue
    }
    tx.sql(
      'update queue set state = 0, attempts = attempts - 1, lost = lost + 1, fence = fence + 1, trail = ? where email_id = ?',
    ).run(appendTrail(row.trail, record), row.email_id)
  }
}

function promoteDeferred(tx: WriteTransaction): void {
  tx.sql(
    `update queue set state = 0 where email_id in
       (select email_id from queue where state = 1 and (due_at <= ? or due_at > ?) order by due_at limit ?)`,
  ).run(tx.nowMs, tx.nowMs + 2 * waitMaxMs, stepMax)
}

function findSuspect(tx: WriteTransaction): string | null {
  const row = tx
    .sql(
      `select email_id from queue join app using (app_id)
       where state = 0 and lost >= 2 and app.status = 'active' order by email_id limit 1`,
    )
    .get()
  return row === undefined ? null : (row.email_id as string)
}

function pickInTurns(tx: WriteTransaction, request: ClaimRequest): string[] {
  const rooms = appsWithReadyMail(tx).map((appId) => ({
    appId,
    room: request.perApp - request.leases.filter((held) => held.appId === appId).length,
  }))
  const open = rooms.filter(({ room }) => room > 0)
  const picked: string[] = []
  let after = new Map<AppId, string>()
  // The first round gives every app its share, the second what the others left over.
  for (const round of [1, 2]) {
    const share = round === 1 ? Math.max(1, Math.floor(request.max / Math.max(open.length, 1))) : request.max
    for (const turn of open) {
      const limit = Math.min(share, turn.room, request.max - picked.length)
      if (limit <= 0) continue
      const ids = readyIds(tx, { appId: turn.appId, after: after.get(turn.appId) ?? '', limit })
      turn.room -= ids.length
      picked.push(...ids)
      after = after.set(turn.appId, ids.at(-1) ?? '~')
      tx.writer.cursors.app = turn.appId
    }
  }
  return picked
}

const readyIds = (tx: WriteTransaction, page: { appId: AppId; after: string; limit: number }): string[] =>
  tx
    .sql(
      'select email_id from queue where state = 0 and lost < 2 and app_id = ? and email_id > ? order by email_id limit ?',
    )
    .all(page.appId, page.after, page.limit)
    .map((row) => row.email_id as string)

/** Active apps with ready mail, beginning after the one served last: a loose index scan. */
function appsWithReadyMail(tx: WriteTransaction): AppId[] {
  const start = tx.writer.cursors.app
  const found: AppId[] = []
  let wrapped = start === ''
  let from = start
  while (found.length < appsPerClaim) {
    const row = tx
      .sql('select min(app_id) as app_id from queue where state = 0 and lost < 2 and app_id > ?')
      .get(from)
    const next = (row?.app_id ?? null) as AppId | null
    if (next === null && wrapped) break
    if (next === null) {
      wrapped = true
      from = ''
      continue
    }
    if (wrapped && start !== '' && next > start) break
    if (tx.app(next)?.status === 'active') found.push(next)
    from = next
  }
  return found
}

function lease(tx: WriteTransaction, emailId: string): Claim[] {
  const row = tx
    .sql(
      `update queue set state = 2, attempts = attempts + 1, fence = fence + 1, lease_until = ?, due_at = ?
       where email_id = ? returning *`,
    )
    .get(tx.nowMs + leaseMs, tx.nowMs + leaseMs, emailId) as QueueRow
  if (row.expires_at <= tx.nowMs) {
    finish(tx, row, { state: 'expired', reason: null, record: null }) // the steps above leave some of a backlog
    return []
  }
  const content = readContent(tx, row)
  if (content === null) return []
  return [
    {
      emailId: row.email_id as EmailId,
      fence: row.fence,
      appId: row.app_id as AppId,
      type: row.type as Claim['type'],
      content,
      acceptedAt: row.accepted_at,
      expiresAt: row.expires_at,
      attempt: row.attempts,
      lifeLeftMs: row.expires_at - tx.nowMs,
      ageMs: tx.nowMs - row.accepted_at,
      alone: row.lost >= 2,
    },
  ]
}

/** Null where it cannot be read: without its key it waits for it, damaged it can never be sent. */
function readContent(tx: WriteTransaction, row: QueueRow): EmailContent | null {
  const body = tx.sql('select body from sealed where email_id = ?').get(row.email_id)?.body as
    | Uint8Array
    | undefined
  try {
    return JSON.parse(unseal(tx.writer.ring, `email ${row.email_id}`, body ?? new Uint8Array()))
  } catch (error) {
    if (error instanceof KeyMissing && body !== undefined) {
      const hold = { emailId: row.email_id as EmailId, fence: row.fence }
      recordOutcome(tx, hold, { kind: 'unattempted', reply: error.message, waitMs: unreadableWaitMs })
    } else {
      finish(tx, row, { state: 'failed', reason: 'unreadable', record: null })
    }
    return null
  }
}

export function renewLeases(tx: WriteTransaction, leases: readonly Lease[]): EmailId[] {
  return leases
    .filter(({ emailId, fence }) => {
      const statement = tx.sql(
        'update queue set lease_until = ? where email_id = ? and fence = ? and state = 2',
      )
      return statement.run(tx.nowMs + leaseMs, emailId, fence).changes === 0
    })
    .map((lease) => lease.emailId)
}
