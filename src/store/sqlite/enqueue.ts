/**
 * The decision on one request, inside the transaction that acts on it: key, key limit, idempotency,
 * verdict, room, recipient and daily limits, in this order. A refusal after the key limit costs
 * nothing but that.
 */
import type { App } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { chargeLimit, keyLimit, type Limit, mailboxLimit, recipientLimit } from '../../domain/app/limit.ts'
import type { AppId, EmailId, KeyId } from '../../domain/id.ts'
import type { LimitHit } from '../../domain/request/rejection.ts'
import { seal } from '../crypto/key-ring.ts'
import { idempotencyMs } from '../shared/bounds.ts'
import { keyBucket, type RecipientNames, recipientNames } from '../shared/bucket-names.ts'
import type { EnqueueRequest, EnqueueResult, NewEmail } from '../store.ts'
import type { CachedKey, WriteTransaction } from './threads/write-transaction.ts'

const dayS = 86_400
const lastUseEveryMs = 60_000

export function enqueue(tx: WriteTransaction, request: EnqueueRequest): EnqueueResult {
  const sender = findSender(tx, request.keyHash)
  if (sender === null) return { kind: 'invalid_key' }
  const { key, app } = sender
  if (request.appVersion !== app.version) return { kind: 'judge_again', app }
  noteUse(tx, key)
  const keyHit = charge(tx, [[keyBucket(key.keyId), keyLimit(app.settings.limits)]])
  if (keyHit !== null) return refuseLimit(tx, app.id, 'key_rate_limited', keyHit)
  const replay = findReplay(tx, app.id, request)
  if (replay !== null) return replay
  if ('refuse' in request.verdict) {
    tx.count(app.id, request.verdict.refuse)
    return { kind: 'refused' }
  }
  return admit(tx, app, request.verdict.admit, request.idempotency)
}

type Idempotency = EnqueueRequest['idempotency']

function admit(tx: WriteTransaction, app: App, email: NewEmail, idempotency: Idempotency): EnqueueResult {
  if (tx.depth >= tx.writer.queueMax) {
    tx.count(app.id, 'queue_full')
    return { kind: 'queue_full' }
  }
  const accepted = tx.usage(app.id, 'accepted')
  const dayFull = accepted >= app.settings.limits.daily
  const names = recipientNames(tx.writer.keyedHash, app.id, email.content.to)
  const recipientHit = charge(tx, recipientBuckets(app, names), !dayFull)
  if (recipientHit !== null) return refuseLimit(tx, app.id, 'recipient_rate_limited', recipientHit)
  if (dayFull) {
    const retryAfterMs = (tx.day + 1) * dayS * 1000 - tx.nowMs
    const hit = { quota: app.settings.limits.daily, windowS: dayS, retryAfterMs }
    return refuseLimit(tx, app.id, 'daily_limit_reached', hit)
  }
  insert(tx, app.id, email, names.recipient)
  if (idempotency !== null) {
    const k = tx.writer.keyedHash('idempotency', app.id, idempotency.key)
    const values = [k, bodyHash(tx, app.id, idempotency), email.id, tx.nowMs] as const
    tx.sql('insert or replace into idempotency values (?, ?, ?, ?)').run(...values)
  }
  tx.count(app.id, 'accepted')
  tx.changeDepth(1)
  return { kind: 'queued', emailId: email.id }
}

function insert(tx: WriteTransaction, appId: AppId, email: NewEmail, recipient: string): void {
  const { id, type, expiresAt, content } = email
  tx.sql("insert into queue values (?, ?, ?, 0, 0, 0, 0, ?, ?, ?, 0, ?, '[]')").run(
    id,
    appId,
    type,
    tx.nowMs,
    expiresAt,
    tx.nowMs,
    recipient,
  )
  tx.sql('insert into sealed values (?, ?)').run(
    id,
    seal(tx.writer.ring, `email ${id}`, JSON.stringify(content)),
  )
}

function findSender(tx: WriteTransaction, keyHash: KeyHash): { key: CachedKey; app: App } | null {
  let key = tx.writer.keys.get(keyHash)
  if (key === undefined) {
    key = readKey(tx, keyHash)
    if (key === null) return null // unknown keys are not cached: anyone can invent them
    tx.writer.keys.set(keyHash, key)
  }
  if (key === null || key.revokedAt !== null) return null
  if (key.expiresAt !== null && key.expiresAt <= tx.nowMs) return null
  const app = tx.app(key.appId)
  return app?.status === 'active' ? { key, app } : null
}

function readKey(tx: WriteTransaction, keyHash: KeyHash): CachedKey | null {
  const row = tx.sql('select * from delivery_key where key_hash = ?').get(keyHash)
  if (row === undefined) return null
  return {
    keyId: row.key_id as KeyId,
    appId: row.app_id as AppId,
    expiresAt: row.expires_at as number | null,
    revokedAt: row.revoked_at as number | null,
    lastUsedAt: Number(row.last_used_at ?? 0),
  }
}

function noteUse(tx: WriteTransaction, key: CachedKey): void {
  if (tx.nowMs - key.lastUsedAt < lastUseEveryMs) return
  key.lastUsedAt = tx.nowMs
  tx.sql('update delivery_key set last_used_at = ? where key_id = ?').run(tx.nowMs, key.keyId)
}

type Bucket = readonly [k: string, limit: Limit]

/** Charges all buckets or none; the first one that is full is the hit. `keep` false: only looks. */
function charge(tx: WriteTransaction, buckets: readonly Bucket[], keep = true): LimitHit | null {
  const charges = buckets.map(([k, limit]) => ({
    k,
    limit,
    charge: chargeLimit(limit, tx.rate(k), tx.nowUs),
  }))
  for (const { limit, charge } of charges) {
    if (charge.ok) continue
    return {
      quota: limit.quota,
      windowS: limit.windowUs / 1e6,
      retryAfterMs: Math.ceil(charge.retryAfterUs / 1000),
    }
  }
  for (const { k, charge } of charges) if (charge.ok && keep) tx.setRate(k, charge.tatUs)
  return null
}

const recipientBuckets = (app: App, { address, mailbox }: RecipientNames): readonly Bucket[] => [
  [address, recipientLimit(app.settings.limits)],
  [mailbox, mailboxLimit(app.settings.limits)],
]

type LimitRefusal = 'key_rate_limited' | 'recipient_rate_limited' | 'daily_limit_reached'

function refuseLimit(tx: WriteTransaction, appId: AppId, kind: LimitRefusal, limit: LimitHit): EnqueueResult {
  tx.count(appId, kind)
  return { kind, limit }
}

const bodyHash = (tx: WriteTransaction, appId: AppId, idempotency: NonNullable<Idempotency>): string =>
  tx.writer.keyedHash('body', appId, idempotency.bodyDigest)

function findReplay(tx: WriteTransaction, appId: AppId, request: EnqueueRequest): EnqueueResult | null {
  if (request.idempotency === null) return null
  const k = tx.writer.keyedHash('idempotency', appId, request.idempotency.key)
  const stored = tx.sql('select body, email_id, at from idempotency where k = ?').get(k)
  if (stored === undefined || Number(stored.at) + idempotencyMs <= tx.nowMs) return null
  if (stored.body === bodyHash(tx, appId, request.idempotency)) {
    return { kind: 'replayed', emailId: stored.email_id as EmailId }
  }
  tx.count(appId, 'invalid_body')
  return { kind: 'idempotency_key_reused' }
}
