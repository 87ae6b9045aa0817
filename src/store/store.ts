/**
 * What the rest of Postern asks of a store: one method per transaction. Two rules hold for every
 * engine: a promise that is kept means the change is durable, and every check that decides an
 * answer is made inside the transaction that acts on it. A method rejects with `StoreUnavailable`
 * where the store cannot answer now; nothing is half done then, but the change may have happened.
 */
import type { App, AppSettings, AppStatus } from '../domain/app/app.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { AttemptRecord, DeliveryOutcome, EmailContent, EmailState } from '../domain/delivery/outcome.ts'
import type { AppId, EmailId, KeyId } from '../domain/id.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { EmailType } from '../domain/request/email-request.ts'
import type { LimitHit, RefusalCode } from '../domain/request/rejection.ts'

/** The store is down, slow, full or read-only. Turned into 503 in one place. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

export type NewEmail = {
  readonly id: EmailId
  readonly type: EmailType
  readonly expiresAt: number
  readonly content: EmailContent
}

/** One request with a well-formed key, and how it was judged. */
export type EnqueueRequest = {
  readonly keyHash: KeyHash
  /** The version of the app's settings that judged it; null where no app was known. */
  readonly appVersion: number | null
  readonly verdict: { readonly admit: NewEmail } | { readonly refuse: RefusalCode }
  /** The idempotency key and a digest of the raw body. */
  readonly idempotency: { readonly key: string; readonly bodyDigest: string } | null
}

export type EnqueueResult =
  | { readonly kind: 'queued' | 'replayed'; readonly emailId: EmailId }
  /** The settings that judged it are not the current ones: judge again by these. */
  | { readonly kind: 'judge_again'; readonly app: App }
  | { readonly kind: 'refused' | 'idempotency_key_reused' | 'invalid_key' | 'queue_full' }
  | {
      readonly kind: 'key_rate_limited' | 'recipient_rate_limited' | 'daily_limit_reached'
      readonly limit: LimitHit
    }

export type ClaimRequest = {
  readonly max: number
  /** No app holds more emails in one worker than this. */
  readonly perApp: number
  /** What this worker holds already: kept for it, and counted to its apps. */
  readonly leases: readonly (Lease & { readonly appId: AppId })[]
}

/** One email leased to a worker. The outcome counts only while `fence` is the email's current one. */
export type Claim = {
  readonly emailId: EmailId
  readonly fence: number
  readonly appId: AppId
  readonly type: EmailType
  readonly content: EmailContent
  readonly acceptedAt: number
  readonly expiresAt: number
  /** This attempt's number, from 1. */
  readonly attempt: number
  /** By the store's clock, at the claim. */
  readonly lifeLeftMs: number
  readonly ageMs: number
  /** It lost several leases: nothing else may be in hand while it is tried. */
  readonly alone: boolean
}

export type Claimed = {
  readonly claims: readonly Claim[]
  readonly apps: ReadonlyMap<AppId, App>
  /** Emails that lost several leases wait for a worker with nothing in hand. */
  readonly suspects: boolean
}

/** A lease, by the fence it was given with. */
export type Lease = { readonly emailId: EmailId; readonly fence: number }

/** How long a claim stays the worker's without a renewal. */
export const leaseMs = 60_000

/** What an operator sees of an email; nothing of its content. */
export type EmailRecord = {
  readonly id: EmailId
  readonly app: AppId
  readonly type: EmailType
  readonly state: EmailState
  readonly attempts: number
  readonly acceptedAt: number
  readonly expiresAt: number
  readonly nextAttemptAt: number | null
  readonly finishedAt: number | null
  readonly reason: string | null
  readonly trail: readonly AttemptRecord[]
}

export type EmailQuery = {
  readonly app?: AppId
  readonly state?: EmailState
  readonly to?: EmailAddress
  readonly limit: number
}

export type KeyRecord = {
  readonly id: KeyId
  readonly app: AppId
  readonly name: string | null
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

type QueueCount = { readonly app: AppId; readonly state: EmailState; readonly count: number }

export type QueueSummary = {
  readonly depth: number
  readonly oldestAcceptedAt: number | null
  readonly nextAttemptAt: number | null
  readonly counts: readonly QueueCount[]
}

export type UsageDay = { readonly day: string; readonly counts: Readonly<Record<string, number>> }

export type Finding = { readonly check: string; readonly ok: boolean; readonly detail: string }

/** The outcome of an operator's command on one email. */
export type EmailChange = 'done' | 'not_found' | 'finished' | 'sending' | 'not_deferred'

export interface Store {
  enqueue(request: EnqueueRequest): Promise<EnqueueResult>
  claimDue(request: ClaimRequest): Promise<Claimed>
  /** Holds that were lost meanwhile. */
  renewLeases(leases: readonly Lease[]): Promise<readonly EmailId[]>
  /** False where the lease was lost: the outcome was not recorded. */
  recordOutcome(hold: Lease, outcome: DeliveryOutcome): Promise<boolean>
  /** One bounded step of upkeep (retention, cancellations, stale buckets); true while there is more. */
  maintain(): Promise<boolean>
  /** Calls back when another process has queued something; not every time, and not at once. */
  onQueued(listener: () => void): void

  /** Null where the slug is taken. */
  createApp(slug: string, settings: AppSettings): Promise<App | null>
  updateApp(id: AppId, change: { settings?: AppSettings; status?: AppStatus }): Promise<App | null>
  /** Ends the app at once; its mail is cancelled by `cancelDeletedAppMail` or `sweep`. False where there is no such app. */
  deleteApp(id: AppId): Promise<boolean>
  /** Cancels and wipes one step of a deleted app's queued mail; how many, 0 when none is left. */
  cancelDeletedAppMail(id: AppId): Promise<number>
  findApp(idOrSlug: string): Promise<App | null>
  listApps(): Promise<readonly App[]>

  createKey(key: {
    app: AppId
    hash: KeyHash
    name: string | null
    expiresAt: number | null
  }): Promise<KeyRecord>
  listKeys(app: AppId): Promise<readonly KeyRecord[]>
  /** Null where there is no such key. Holds for the next request on every node. */
  revokeKey(id: KeyId): Promise<KeyRecord | null>

  findEmail(id: EmailId): Promise<EmailRecord | null>
  listEmails(query: EmailQuery): Promise<readonly EmailRecord[]>
  retryEmail(id: EmailId): Promise<EmailChange>
  cancelEmail(id: EmailId): Promise<EmailChange>

  queueSummary(): Promise<QueueSummary>
  /** Depth and oldest age alone: cheap at any depth, for metrics and readiness. */
  queueGauge(): Promise<{ readonly depth: number; readonly oldestAcceptedAt: number | null }>
  usage(app: AppId): Promise<readonly UsageDay[]>

  /** What an operator should know of the database beneath, each with a verdict. */
  examine(): Promise<readonly Finding[]>
  /** Milliseconds since 1970 UTC, by the clock that decides. */
  now(): number
  close(): Promise<void>
}
