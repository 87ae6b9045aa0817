/**
 * Claiming due mail. A claim first renews the leases of its worker. It ends expired mail, takes back
 * lapsed leases and queues deferred mail that is due, in bounded steps. The first claim takes all leases
 * back. Apps with ready mail then take turns. They are found by a loose index scan, so one app's million
 * emails do not slow another's.
 */
import type { App } from '../../../domain/app/app.ts'
import { appsPerClaim, appsSeenPerClaim, retryForMs, stepMax, waitMaxMs } from '../../../domain/bounds.ts'
import type { AttemptRecord } from '../../../domain/delivery/outcome.ts'
import { noReply } from '../../../domain/delivery/reply.ts'
import { type EndedEmail, type LostLease, lostLeaseWaitMs } from '../../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../../domain/id.ts'
import { openContent } from '../../crypto/sealed-content.ts'
import { queueParts } from '../../shared/queue-parts.ts'
import { toClaim } from '../../shared/rows.ts'
import {
  allLeases,
  type Claim,
  type Claimed,
  type ClaimRequest,
  type Lease,
  leaseMs,
  mayTakeSuspect,
} from '../../store.ts'
import { appendTrail, finish, type QueueRow, recordOutcome } from './outcome.ts'
import type { WriteTransaction } from './write-transaction.ts'

/** `allVoid`: this process has just taken the worker lock, so every process that held a lease is dead. */
export type ClaimCall = { readonly request: ClaimRequest; readonly allVoid: boolean }
export type ClaimResult = Pick<Claimed, 'claims' | 'apps' | 'suspects' | 'more' | 'elsewhere' | 'lost' | 'ended'> & {
  /** The queue is empty. */
  readonly isEmpty: boolean
}

export function claimDue(tx: WriteTransaction, { request, allVoid }: ClaimCall): ClaimResult {
  keepLeases(tx, allLeases(request))
  const expired = expire(tx)
  const lost = takeBack(tx, allVoid ? findLeased(tx) : findLapsed(tx))
  queueDeferred(tx)
  const { transport = null } = request
  const suspect = findSuspect(tx, transport)
  const seen = appsWithReadyMail(tx, request)
  const triesSuspect = suspect !== null && mayTrySuspect(tx, request, seen)
  const { apps: turns } = tx.writer.cursors
  const { after } = turns.of(transport)
  // A suspect is out of turn: the apps that were seen keep theirs.
  const { ids, last } = triesSuspect
    ? { ids: [suspect], last: seen.apps.length > 0 ? after : null }
    : pickInTurns(tx, request.max, seen.apps)
  const isFruitless = seen.cutAt !== null && ids.length === 0
  const goesOn = turns.note(transport, last ?? seen.cutAt ?? after, isFruitless)
  const more = ids.length > 0 || goesOn
  const taken = ids.map((id) => claimOne(tx, id))
  const claims = taken.flatMap(({ claim }) => claim ?? [])
  const ended = [...expired, ...taken.flatMap(({ ended }) => ended ?? [])]
  tx.writer.cursors.suspectLast = claims.some((claim) => claim.isSuspect)
  const apps = new Map<AppId, App>()
  for (const { appId } of claims) {
    const app = tx.app(appId)
    if (app !== null) apps.set(appId, app)
  }
  const suspects = suspect !== null && !mayTakeSuspect(request)
  const isEmpty = tx.sql('select 1 from queue limit 1').get() === undefined
  return { claims, apps, suspects, more, elsewhere: seen.elsewhere, lost, ended, isEmpty }
}

/** Ordinary mail goes between two suspects, so that many of them delay nobody. */
const mayTrySuspect = (tx: WriteTransaction, request: ClaimRequest, { apps }: SeenApps): boolean =>
  mayTakeSuspect(request) && !(tx.writer.cursors.suspectLast && apps.length > 0)

/** Renews the claiming worker's own leases: they have not lapsed, even after a pause or a clock step. */
function keepLeases(tx: WriteTransaction, leases: readonly Lease[]): void {
  for (const { emailId, fence } of leases) {
    tx.sql(
      `update queue set lease_until = ? where email_id = ? and fence = ? and state = 'sending'
         and (lease_until < ? or lease_until > ?)`,
    ).run(tx.nowMs + leaseMs, emailId, fence, tx.nowMs + leaseMs / 2, tx.nowMs + leaseMs)
  }
}

/** One step: if it ends `stepMax` emails, there may be more. */
export function expire(tx: WriteTransaction): EndedEmail[] {
  const rows = tx
    .sql(
      `select * from queue where expires_at <= ? and state in ('queued', 'deferred')
       order by expires_at limit ?`,
    )
    .all(tx.nowMs, stepMax) as QueueRow[]
  return rows.map((row) => finish(tx, row, { state: 'expired', reason: null, record: null }))
}

const findLeased = (tx: WriteTransaction) => tx.sql("select * from queue where state = 'sending'").all() as QueueRow[]

// A `lease_until` further ahead than we ever set one dates from before the clock was set back: it has lapsed.
const findLapsed = (tx: WriteTransaction) =>
  tx
    .sql("select * from queue where state = 'sending' and (lease_until <= ? or lease_until > ?) limit ?")
    .all(tx.nowMs, tx.nowMs + 2 * leaseMs, stepMax) as QueueRow[]

function takeBack(tx: WriteTransaction, rows: readonly QueueRow[]): LostLease[] {
  const statement = tx.sql(
    `update queue set state = ?, due_at = ?, attempts = attempts - 1, lost_leases = ?, fence = fence + 1,
       trail = ? where email_id = ?`,
  )
  const record: AttemptRecord = { at: tx.nowMs, outcome: 'lost' }
  return rows.map(({ email_id, expires_at, lost_leases, trail }) => {
    const count = lost_leases + 1
    const waitMs = lostLeaseWaitMs(count)
    const dueAt = Math.min(tx.nowMs + waitMs, expires_at)
    statement.run(waitMs === 0 ? 'queued' : 'deferred', dueAt, count, appendTrail(trail, record), email_id)
    return { emailId: email_id, count }
  })
}

/** Few, because accepting waits for them, in every claim, when a backlog is due at once. */
const dueMax = 100

// The same holds for a `due_at` further ahead than the longest wait.
function queueDeferred(tx: WriteTransaction): void {
  // Two ranges of the index: with one condition for both, each claim would read all mail that is not due.
  const part = (where: string) =>
    `select email_id from (select email_id from queue where state = 'deferred' and missing_key is null and ${where}
       order by due_at limit ${dueMax})`
  tx.sql(
    `update queue set state = 'queued' where email_id in (${part('due_at <= ?')} union all ${part('due_at > ?')})`,
  ).run(tx.nowMs, tx.nowMs + 2 * waitMaxMs)
  if (!waitsForKeys(tx)) return
  tx.sql(
    `update queue set missing_key = null, due_at = max(wanted_at, ?1),
       state = case when wanted_at <= ?1 then 'queued' else 'deferred' end
     where email_id in (select email_id from queue where ${queueParts.deferred}
       and missing_key in (select value from json_each(?2)) limit ${dueMax})`,
  ).run(tx.nowMs, tx.writer.ringIds)
}

/** Seldom so, and cheaper to ask than to change no row in every claim. */
const waitsForKeys = (tx: WriteTransaction): boolean =>
  tx.sql(`select 1 from queue where ${queueParts.deferred} and missing_key is not null limit 1`).get() !== undefined

/** The oldest one of an active app of the transport: the apps that have any, and the first one of each. */
function findSuspect(tx: WriteTransaction, transport: string | null): EmailId | null {
  const suspects = `queue where ${queueParts.suspect}`
  const row = tx
    .sql(
      `with recursive owner(app_id) as (
         select (select min(app_id) from ${suspects}) union all
         select (select min(app_id) from ${suspects} and app_id > owner.app_id) from owner where owner.app_id is not null)
       select (select min(email_id) from ${suspects} and queue.app_id = owner.app_id) as email_id
       from owner join app using (app_id) where app.status = 'active' and app.transport is ? order by email_id limit 1`,
    )
    .get(transport)
  return row === undefined ? null : (row.email_id as EmailId)
}

/**
 * Ids of ready mail: a share for each app in the first round, then the places that others left over. `last`:
 * the app that was served last.
 */
function pickInTurns(tx: WriteTransaction, max: number, apps: SeenApps['apps']) {
  const turns = apps.map((app) => ({ ...app, after: '' as EmailId | '' | null }))
  const share = Math.max(1, Math.floor(max / Math.max(turns.length, 1)))
  const ids: EmailId[] = []
  let last: AppId | null = null
  for (const limit of [share, max]) {
    for (const app of turns) {
      const take = Math.min(limit, app.places, max - ids.length)
      if (take <= 0 || app.after === null) continue
      const found = readyIds(tx, { appId: app.appId, after: app.after, limit: take })
      app.places -= found.length
      app.after = found.at(-1) ?? null
      ids.push(...found)
      last = app.appId
    }
  }
  return { ids, last }
}

const readyIds = (tx: WriteTransaction, step: { appId: AppId; after: string; limit: number }): EmailId[] =>
  tx
    .sql(
      `select email_id from queue where ${queueParts.ready} and app_id = ? and email_id > ? order by email_id limit ?`,
    )
    .all(step.appId, step.after, step.limit)
    .map((row) => row.email_id as EmailId)

type SeenApps = {
  /** Active apps with ready mail of the transport, and how much more each may have: at least one. */
  readonly apps: readonly { readonly appId: AppId; readonly places: number }[]
  /** The other transports whose apps it passed. */
  readonly elsewhere: readonly (string | null)[]
  /** Where it ended, if it passed too many apps to see all; null otherwise. */
  readonly cutAt: AppId | null
}

/** From the one after the app served last. */
function appsWithReadyMail(tx: WriteTransaction, { leases, perApp, transport = null }: ClaimRequest): SeenApps {
  const { after: start, soughtFrom } = tx.writer.cursors.apps.of(transport)
  const end = soughtFrom ?? start
  const apps: SeenApps['apps'][number][] = []
  const elsewhere = new Set<string | null>()
  let wrapped = end === '' || start < end
  let from: AppId | '' = start
  for (let passed = 0; apps.length < appsPerClaim; ) {
    const row = tx.sql(`select min(app_id) as app_id from queue where ${queueParts.ready} and app_id > ?`).get(from)
    const next = (row?.app_id ?? null) as AppId | null
    if (next === null && wrapped) break
    if (next === null) {
      wrapped = true
      from = ''
      continue
    }
    if (wrapped && end !== '' && next > end) break
    const app = tx.app(next)
    const own = app?.settings.transport ?? null
    if (app?.status === 'active' && own !== transport) elsewhere.add(own)
    else if (app?.status === 'active') {
      const places = perApp - leases.filter(({ appId }) => appId === next).length
      if (places > 0) apps.push({ appId: next, places })
    }
    from = next
    if (++passed === appsSeenPerClaim) return { apps, elsewhere: [...elsewhere], cutAt: next }
  }
  return { apps, elsewhere: [...elsewhere], cutAt: null }
}

/**
 * Leases one email. It ends instead if it has expired, which `expire` may not have reached, or is damaged.
 */
function claimOne(tx: WriteTransaction, emailId: EmailId): { claim?: Claim; ended?: EndedEmail } {
  const row = tx
    .sql(
      `update queue set state = 'sending', attempts = attempts + 1, fence = fence + 1, lease_until = ?, due_at = ?,
         missing_key = null where email_id = ? returning *`,
    )
    .get(tx.nowMs + leaseMs, tx.nowMs + leaseMs, emailId) as QueueRow
  if (row.expires_at <= tx.nowMs) {
    return { ended: finish(tx, row, { state: 'expired', reason: null, record: null }) }
  }
  const opened = openContent(tx.writer.ring, emailId, row.sealed)
  switch (opened.kind) {
    case 'content':
      return { claim: toClaim(row, opened.content, tx.nowMs) }
    case 'key_missing': {
      const wait = { relay: null, reply: noReply(opened.why), waitMs: retryForMs }
      const outcome = { kind: 'unattempted', ...wait, missingKey: opened.keyId } as const
      recordOutcome(tx, { emailId, fence: row.fence }, outcome)
      return {}
    }
    case 'damaged': {
      const record = { at: tx.nowMs, outcome: 'failed', reply: noReply(opened.why) } as const
      return { ended: finish(tx, row, { state: 'failed', reason: 'unreadable', record }) }
    }
    default:
      return opened satisfies never
  }
}
