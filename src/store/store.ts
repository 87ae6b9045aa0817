/**
 * The interface of a store: one method per transaction. Two rules hold for every engine: when a
 * method resolves, its change is durable; and every check that decides an answer is made inside the
 * transaction that acts on it. A method rejects with `StoreUnavailable` if the store cannot answer
 * now. The change was then made completely or not at all; the caller cannot know which.
 */
import type { App, AppStatus } from '../domain/app/app.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { LimitHit, LimitRefusal } from '../domain/app/limit.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import type { EmailContent } from '../domain/delivery/email-content.ts'
import type { AttemptRecord, DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { EmailState, EndedCount, EndReason, LiveState, LostLease } from '../domain/delivery/states.ts'
import type { AppId, EmailId, KeyId } from '../domain/id.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { EmailType } from '../domain/request/email-request.ts'
import type { RefusalCode } from '../domain/request/rejection.ts'

/** The store is down, slow, full or read-only. Answered with 503 in one place. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

export type NewEmail = {
  readonly id: EmailId
  readonly type: EmailType
  readonly expiresAt: number
  readonly content: EmailContent
}

/** The judgement of a request by one version of its app's settings. */
export type Judged = {
  readonly version: number
  readonly verdict: { readonly admit: NewEmail } | { readonly refuse: RefusalCode }
  /** The idempotency key and a digest of the raw body. */
  readonly idempotency: { readonly key: string; readonly bodyDigest: string } | null
}

/** One request with a well-formed key. `judged` is null while the app of the key is unknown. */
export type EnqueueRequest = { readonly keyHash: KeyHash; readonly judged: Judged | null }

/** The key of a request, and its app. */
export type Caller = { readonly appId: AppId; readonly keyId: KeyId }

export type EnqueueResult =
  /** The key is unknown, revoked or expired, or its app is not active. */
  | { readonly kind: 'invalid_key' }
  /** The app's settings are not those that judged the request: judge it again by these. */
  | { readonly kind: 'judge_again'; readonly app: App }
  | ({ readonly kind: 'queued' | 'replayed'; readonly emailId: EmailId } & Caller)
  | ({ readonly kind: 'refused' | 'idempotency_key_reused' | 'queue_full' } & Caller)
  | ({ readonly kind: LimitRefusal; readonly limit: LimitHit } & Caller)

/** A worker's right to send one email for `leaseMs`. A lease with an older fence is lost. */
export type Lease = { readonly emailId: EmailId; readonly fence: number }

/** How long a lease lasts unless it is renewed. */
export const leaseMs = 60_000

export type ClaimRequest = {
  readonly max: number
  /** No app holds more emails in one worker than this. */
  readonly perApp: number
  /** The leases that the worker still holds: they are renewed, and count for their apps. */
  readonly leases: readonly (Lease & { readonly appId: AppId })[]
  /** Hand out a suspect although the worker holds leases. */
  readonly takeSuspect?: boolean
}

/** A worker that holds nothing may take a suspect, and one that has yielded to it. */
export const mayTakeSuspect = ({ leases, takeSuspect = false }: ClaimRequest): boolean =>
  leases.length === 0 || takeSuspect

/** One email leased to a worker. Its outcome is recorded only while `fence` is the email's current one. */
export type Claim = {
  readonly emailId: EmailId
  readonly fence: number
  readonly appId: AppId
  readonly type: EmailType
  readonly content: EmailContent
  readonly acceptedAt: number
  readonly expiresAt: number
  /** The number of this attempt, from 1. */
  readonly attempt: number
  /** The remaining life of the link, and the age of the email, by the store's clock at the claim. */
  readonly lifeLeftMs: number
  readonly ageMs: number
  /** It lost several leases, and was claimed alone. */
  readonly isSuspect: boolean
}

export type Claimed = {
  readonly claims: readonly Claim[]
  readonly apps: ReadonlyMap<AppId, App>
  /** False once other workers may believe that this one is dead: all these leases then count as lost. */
  readonly areLeasesValid: () => boolean
  /** Whether others learn at once if this worker dies. If not, its mail then waits for up to `leaseMs`. */
  readonly deathIsKnown: boolean
  /** Another process sends for this database. This one claims nothing until that one has ended. */
  readonly standby: boolean
  /** A suspect waits, and the request did not allow one. */
  readonly suspects: boolean
  /** The leases that this call took back: of dead workers, and lapsed ones. */
  readonly lost: readonly LostLease[]
  /** The emails that this call ended itself. */
  readonly ended: readonly EndedCount[]
}

/** `more`: another step would find work now. */
export type Maintained = { readonly more: boolean; readonly ended: readonly EndedCount[] }

/** The record of an email; it contains nothing of the email's content. */
export type EmailRecord = {
  readonly id: EmailId
  readonly app: AppId
  /** The delivery key that sent it. */
  readonly key: KeyId
  readonly type: EmailType
  readonly state: EmailState
  readonly attempts: number
  /** How often a worker died, stopped or lost its connection while it held this email. */
  readonly lostLeases: number
  readonly acceptedAt: number
  readonly expiresAt: number
  readonly nextAttemptAt: number | null
  readonly finishedAt: number | null
  readonly reason: EndReason | null
  /** Its attempts, oldest first; the newest 60 are kept. */
  readonly trail: readonly AttemptRecord[]
}

export type EmailQuery = {
  readonly app?: AppId
  readonly key?: KeyId
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

type QueueCount = { readonly app: AppId; readonly state: LiveState; readonly count: number }

export type QueueGauge = { readonly depth: number; readonly oldestAcceptedAt: number | null }

export type QueueSummary = QueueGauge & {
  readonly nextAttemptAt: number | null
  readonly counts: readonly QueueCount[]
}

export type UsageDay = { readonly day: string; readonly counts: Readonly<Record<string, number>> }

export type Finding = { readonly check: string; readonly ok: boolean; readonly detail: string }

/** The result of an operator's command on one email. */
export type EmailChange = 'done' | 'not_found' | 'finished' | 'sending' | 'not_deferred'

export type KeyReplacement = {
  readonly hash: KeyHash
  readonly expiresAt: number | null
  readonly oldExpiresAt: number
}

export type RetryStep = { readonly retried: number; readonly next: EmailId | null }

/** `ifVersion`: change the app only if it has this version. */
export type AppChange = {
  readonly settings?: AppSettings
  readonly status?: AppStatus
  readonly ifVersion?: number
}

export interface Store {
  enqueue(request: EnqueueRequest): Promise<EnqueueResult>
  claimDue(request: ClaimRequest): Promise<Claimed>
  /** Returns the leases that are lost: another worker may have claimed their emails. */
  renewLeases(leases: readonly Lease[]): Promise<readonly Lease[]>
  /** False if the lease was lost: the outcome was not recorded. */
  recordOutcome(lease: Lease, outcome: DeliveryOutcome): Promise<boolean>
  /** One bounded step of maintenance: retention, cancellations, rate-limit rows that have refilled. */
  maintain(): Promise<Maintained>
  /**
   * Called once by a worker before its first claim. On PostgreSQL other workers learn of its death by this
   * session. `onQueued` is called when another process has queued mail; calls are merged and may be missed, so also poll.
   */
  openWorkerSession(onQueued: () => void): void

  /** Null if the slug is taken. */
  createApp(slug: string, settings: AppSettings): Promise<App | null>
  /** Null if there is no such app; `stale` if its version is not `ifVersion`. */
  updateApp(id: AppId, change: AppChange): Promise<App | 'stale' | null>
  /**
   * Revokes the app's keys and frees its slug at once; `cancelDeletedAppMail` and `maintain` cancel
   * its mail and then remove the app. False if there is no such app.
   */
  deleteApp(id: AppId): Promise<boolean>
  /** Cancels one step of a deleted app's mail. Returns how many emails; after 0 the app is removed. */
  cancelDeletedAppMail(id: AppId): Promise<number>
  findApp(idOrSlug: string): Promise<App | null>
  /**
   * For pages that anyone can open: rejects with `StoreUnavailable` when many such look-ups
   * wait, and never delays the other methods.
   */
  findAppBySlug(slug: string): Promise<App | null>
  listApps(): Promise<readonly App[]>

  createKey(key: {
    app: AppId
    hash: KeyHash
    name: string | null
    expiresAt: number | null
  }): Promise<KeyRecord>
  listKeys(app: AppId): Promise<readonly KeyRecord[]>
  /**
   * Makes another key of the same app and name, and lets the old one end at `oldExpiresAt` if it does not end before. Null
   * if there is no such key; `ended` if it is revoked or has expired.
   */
  replaceKey(id: KeyId, next: KeyReplacement): Promise<KeyRecord | 'ended' | null>
  /** Null if there is no such key. Takes effect for the next request in every process. */
  revokeKey(id: KeyId): Promise<KeyRecord | null>

  findEmail(id: EmailId): Promise<EmailRecord | null>
  /** Newest first. */
  listEmails(query: EmailQuery): Promise<readonly EmailRecord[]>
  retryEmail(id: EmailId): Promise<EmailChange>
  cancelEmail(id: EmailId): Promise<EmailChange>
  /**
   * Makes deferred mail due now, except suspects, of one app or (null) of all: one step through the queue, in the order of ids, after
   * `after`. `next` is where the next step begins; null at the end.
   */
  retryDeferred(app: AppId | null, after: EmailId | null): Promise<RetryStep>

  queueSummary(): Promise<QueueSummary>
  /** Depth and oldest acceptance: cheap at any depth, for metrics and readiness. */
  queueGauge(): Promise<QueueGauge>
  usage(app: AppId): Promise<readonly UsageDay[]>

  /** Checks the database and the machine that it runs on. */
  examine(): Promise<readonly Finding[]>
  /** Milliseconds since 1970 UTC on the store's clock, which decides limits, leases and expiry. */
  now(): number
  close(): Promise<void>
}
