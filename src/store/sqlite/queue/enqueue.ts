/**
 * The decision on one request, inside the transaction that acts on it: key, key limit, idempotency,
 * verdict, queue bound, recipient and daily limits, in this order. After the key limit, a refusal
 * charges nothing.
 */
import type { App } from '../../../domain/app/app.ts'
import type { KeyHash } from '../../../domain/app/delivery-key.ts'
import { hasEnded } from '../../../domain/bearer.ts'
import { idempotencyMs, lastUseEveryMs, supersededAfterMs } from '../../../domain/bounds.ts'
import type { SuppressionReason } from '../../../domain/delivery/states.ts'
import { dayMs } from '../../../domain/duration.ts'
import type { AppId, EmailId, KeyId } from '../../../domain/id.ts'
import {
  chargeLimit,
  dailyWindowS,
  keyLimit,
  type Limit,
  type LimitHit,
  type LimitRefusal,
  mailboxLimit,
  recipientLimit,
} from '../../../domain/limit.ts'
import { sealContent } from '../../crypto/sealed-content.ts'
import { nameRecipientBuckets, type RecipientNames } from '../../shared/bucket-names.ts'
import { nameSuperseding } from '../../shared/recent-emails.ts'
import { toNetworks } from '../../shared/rows.ts'
import type { Caller, EnqueueRequest, EnqueueResult, Judged, NewEmail } from '../../store.ts'
import { type Bucket, findCallerBucket, recipientBuckets } from './buckets.ts'
import { finish, type QueueRow } from './outcome.ts'
import type { CachedKey, WriteTransaction } from './write-transaction.ts'

export function enqueue(tx: WriteTransaction, request: EnqueueRequest): EnqueueResult {
  const { judged } = request
  const key = 'keyHash' in request ? findKey(tx, request.keyHash) : null
  const appId = 'appId' in request ? request.appId : key?.appId
  const app = appId === undefined ? null : tx.app(appId)
  if (app?.status !== 'active') return { kind: 'invalid_key' }
  if (judged?.version !== app.version) return { kind: 'judge_again', app, networks: key?.networks ?? null }
  const caller = { appId: app.id, keyId: key?.keyId ?? null }
  const bucket = key?.bucket ?? findCallerBucket(tx.writer.keyedHash, caller)
  const keyHit = charge(tx, [[bucket, keyLimit(app.settings.limits)]])
  if (keyHit !== null) return refuseLimit(tx, caller, 'key_rate_limited', keyHit)
  if (key !== null) noteUse(tx, key)
  const replay = findReplay(tx, caller, judged.idempotency)
  if (replay !== null) return replay
  if ('refuse' in judged.verdict) {
    tx.count(app.id, judged.verdict.refuse)
    return { kind: 'refused', ...caller }
  }
  return queueWithinLimits(tx, { app, caller, email: judged.verdict.admit, idempotency: judged.idempotency })
}

type Idempotency = Judged['idempotency']
type ValidRequest = { app: App; caller: Caller; email: NewEmail; idempotency: Idempotency }

function queueWithinLimits(tx: WriteTransaction, { app, caller, email, idempotency }: ValidRequest): EnqueueResult {
  if (tx.depth >= tx.writer.queueMax) {
    tx.count(app.id, 'queue_full')
    return { kind: 'queue_full', ...caller }
  }
  const { limits } = app.settings
  const dayFull = tx.acceptedToday(app.id) >= limits.daily
  const names = nameRecipientBuckets(tx.writer.keyedHash, app.id, email.content.to)
  const recipientHit = charge(tx, readRecipientLimits(app, names), !dayFull)
  if (recipientHit !== null) return refuseLimit(tx, caller, 'recipient_rate_limited', recipientHit)
  if (dayFull) {
    const retryAfterMs = (tx.day + 1) * dayMs - tx.nowMs
    const hit = { quota: limits.daily, windowS: dailyWindowS, retryAfterMs }
    return refuseLimit(tx, caller, 'daily_limit_reached', hit)
  }
  if (idempotency !== null) rememberRequest(tx, caller.appId, idempotency, email.id)
  tx.count(app.id, 'accepted')
  const reason = tx.findSuppression(app.id, names.recipient, email.type)
  if (reason !== null) {
    keepSuppressed(tx, caller, email, { recipient: names.recipient, reason })
    return { kind: 'suppressed', emailId: email.id, ...caller }
  }
  const superseded = supersede(tx, email, names)
  insert(tx, caller, email, names.recipient)
  tx.changeDepth(1)
  return { kind: 'queued', emailId: email.id, superseded, ...caller }
}

/** Cancels the older emails of its name that have waited, unless a worker has them. */
function supersede(tx: WriteTransaction, email: NewEmail, names: RecipientNames): EmailId[] {
  const { recent } = tx.writer
  const name = nameSuperseding(names, email)
  const superseded = recent.find(name).filter((older) => {
    const waiting = tx
      .sql("select * from queue where email_id = ? and state <> 'sending' and accepted_at <= ? and expires_at <= ?")
      .get(older, tx.nowMs - supersededAfterMs, email.expiresAt)
    if (waiting === undefined) return false
    finish(tx, waiting as QueueRow, { state: 'cancelled', reason: 'superseded', record: null })
    return true
  })
  recent.add(name, email.id)
  return superseded
}

type Suppressed = { readonly recipient: string; readonly reason: SuppressionReason }

/** The record of an email that is accepted and not sent; nothing of its content is kept. */
function keepSuppressed(
  tx: WriteTransaction,
  { appId, keyId }: Caller,
  { id, type, expiresAt, traceparent }: NewEmail,
  { recipient, reason }: Suppressed,
): void {
  tx.sql(
    `insert into history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at,
       expires_at, finished_at, recipient, trail, traceparent)
     values (?, ?, ?, ?, 'suppressed', ?, 0, 0, ?, ?, ?, ?, '[]', ?)`,
  ).run(id, appId, keyId, type, reason, tx.nowMs, expiresAt, tx.nowMs, recipient, traceparent)
  tx.count(appId, 'suppressed')
}

function insert(tx: WriteTransaction, { appId, keyId }: Caller, email: NewEmail, recipient: string): void {
  const { id, type, expiresAt, content, traceparent } = email
  const sealed = sealContent(tx.writer.ring, id, content)
  tx.sql(
    `insert into queue (email_id, app_id, key_id, type, state, attempts, lost_leases, fence, accepted_at,
       expires_at, due_at, wanted_at, lease_until, recipient, trail, traceparent, sealed)
     values (?, ?, ?, ?, 'queued', 0, 0, 0, ?, ?, ?, ?, 0, ?, '[]', ?, ?)`,
  ).run(id, appId, keyId, type, tx.nowMs, expiresAt, tx.nowMs, tx.nowMs, recipient, traceparent, sealed)
}

/** Null if the key is unknown or has ended. */
function findKey(tx: WriteTransaction, keyHash: KeyHash): CachedKey | null {
  const key = tx.writer.keys.get(keyHash) ?? readKey(tx, keyHash)
  if (key === null) return null // unknown keys are not cached: anyone can invent them
  tx.writer.keys.set(keyHash, key)
  return hasEnded(key, tx.nowMs) ? null : key
}

function readKey(tx: WriteTransaction, keyHash: KeyHash): CachedKey | null {
  const row = tx.sql('select * from delivery_key where key_hash = ?').get(keyHash)
  if (row === undefined) return null
  const caller = { keyId: row.key_id as KeyId, appId: row.app_id as AppId }
  return {
    ...caller,
    bucket: findCallerBucket(tx.writer.keyedHash, caller),
    expiresAt: row.expires_at as number | null,
    revokedAt: row.revoked_at as number | null,
    lastUsedAt: Number(row.last_used_at ?? 0),
    networks: toNetworks(row.networks),
  }
}

function noteUse(tx: WriteTransaction, key: CachedKey): void {
  if (tx.nowMs - key.lastUsedAt < lastUseEveryMs) return
  key.lastUsedAt = tx.nowMs
  tx.sql('update delivery_key set last_used_at = ? where key_id = ?').run(tx.nowMs, key.keyId)
}

type LimitedBucket = readonly [bucket: Bucket, limit: Limit]

/** Charges all buckets or none; returns the first limit that is reached. `keep` false: only looks. */
function charge(tx: WriteTransaction, buckets: readonly LimitedBucket[], keep = true): LimitHit | null {
  const charges = buckets.map(([bucket, limit]) => ({
    bucket,
    limit,
    charge: chargeLimit(limit, tx.arrivalUs(bucket), tx.nowUs),
  }))
  for (const { limit, charge } of charges) {
    if (charge.ok) continue
    const retryAfterMs = Math.ceil(charge.retryAfterUs / 1000)
    return { quota: limit.quota, windowS: limit.windowUs / 1e6, retryAfterMs }
  }
  for (const { bucket, charge } of charges) if (charge.ok && keep) tx.setArrivalUs(bucket, charge.arrivalUs)
  return null
}

function readRecipientLimits(app: App, names: RecipientNames): readonly LimitedBucket[] {
  const { address, mailbox } = recipientBuckets(names)
  return [
    [address, recipientLimit(app.settings.limits)],
    [mailbox, mailboxLimit(app.settings.limits)],
  ]
}

function refuseLimit(tx: WriteTransaction, caller: Caller, kind: LimitRefusal, limit: LimitHit): EnqueueResult {
  tx.count(caller.appId, kind)
  return { kind, limit, ...caller }
}

const requestKey = (tx: WriteTransaction, appId: AppId, { key }: NonNullable<Idempotency>): string =>
  tx.writer.keyedHash('idempotency', appId, key)
const bodyHash = (tx: WriteTransaction, appId: AppId, { bodyDigest }: NonNullable<Idempotency>): string =>
  tx.writer.keyedHash('body', appId, bodyDigest)

function rememberRequest(
  tx: WriteTransaction,
  appId: AppId,
  idempotency: NonNullable<Idempotency>,
  emailId: EmailId,
): void {
  tx.sql('insert or replace into idempotency (request_key, body_hash, email_id, created_at) values (?, ?, ?, ?)').run(
    requestKey(tx, appId, idempotency),
    bodyHash(tx, appId, idempotency),
    emailId,
    tx.nowMs,
  )
}

function findReplay(tx: WriteTransaction, caller: Caller, idempotency: Idempotency): EnqueueResult | null {
  if (idempotency === null) return null
  const stored = tx
    .sql('select body_hash, email_id, created_at from idempotency where request_key = ?')
    .get(requestKey(tx, caller.appId, idempotency))
  if (stored === undefined || Number(stored.created_at) + idempotencyMs <= tx.nowMs) return null
  if (stored.body_hash === bodyHash(tx, caller.appId, idempotency)) {
    return { kind: 'replayed', emailId: stored.email_id as EmailId, ...caller }
  }
  tx.count(caller.appId, 'invalid_body')
  return { kind: 'idempotency_key_reused', ...caller }
}
