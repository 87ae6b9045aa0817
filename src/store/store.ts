/**
 * The interface of a store: one method per transaction. Two rules hold for every engine: when a
 * method resolves, its change is durable; and every check that decides an answer is made inside the
 * transaction that acts on it. A method rejects with `StoreUnavailable` if the store cannot answer
 * now. The change was then made completely or not at all; the caller cannot know which.
 */
import type { App } from '../domain/app/app.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { Reference } from '../domain/delivery/reference.ts'
import type { EndedEmail, LostLease } from '../domain/delivery/states.ts'
import type { AppId, EmailId, KeyId } from '../domain/id.ts'
import type { LimitHit, LimitRefusal } from '../domain/limit.ts'
import type { EmailContent } from '../domain/request/email-content.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import type { RefusalCode } from '../domain/request/rejection.ts'
import type { ActivityStore } from './activity-store.ts'
import type { AuthHookStore } from './auth-hook-store.ts'
import type { InboxStore } from './inbox-store.ts'
import type { OperatorStore, QueueGauge } from './operator-store.ts'
import type { PeopleStore } from './people-store.ts'
import type { ReportStore } from './report-store.ts'
import type { SigningKeyStore } from './signing-key-store.ts'
import type { TransportStore } from './transport-store.ts'
import type { WebhookStore } from './webhook-store.ts'

/** The store is down, slow, full or read-only. Each listener answers it with 503. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

export type NewEmail = {
  readonly id: EmailId
  readonly type: EmailType
  readonly expiresAt: number
  readonly content: EmailContent
  /** The `traceparent` (W3C Trace Context) of the request; null if it is not traced. */
  readonly traceparent: string | null
  /**
   * Older emails of the same app and recipient with the same key are cancelled if they have waited for
   * `supersededAfterMs` and still do. Null for one that supersedes none.
   */
  readonly supersedeKey: string | null
}

/** The judgement of a request by one version of its app's settings. */
export type Judged = {
  readonly version: number
  readonly verdict: { readonly admit: NewEmail } | { readonly refuse: RefusalCode }
  /** The idempotency key and a digest of the raw body. */
  readonly idempotency: { readonly key: string; readonly bodyDigest: string } | null
}

/**
 * One request: with a well-formed key, or for an app without a key (a test email of an operator). `judged` is
 * null while the app of the key is unknown.
 */
export type EnqueueRequest = ({ readonly keyHash: KeyHash } | { readonly appId: AppId }) & {
  readonly judged: Judged | null
}

/** The app of a request, and its key; null for a test email. */
export type Caller = { readonly appId: AppId; readonly keyId: KeyId | null }

export type EnqueueResult =
  /** The key is unknown, revoked or expired, or the app is not active. */
  | { readonly kind: 'invalid_key' }
  /**
   * The app's settings are not those that judged the request: judge it again by these. `networks`: those that
   * may use its key; null for all. A change of them counts as one of the settings.
   */
  | { readonly kind: 'judge_again'; readonly app: App; readonly networks: readonly string[] | null }
  /** `superseded`: the older emails that are cancelled. */
  | ({
      readonly kind: 'queued'
      readonly emailId: EmailId
      readonly superseded: readonly EmailId[]
    } & Caller)
  /** `suppressed`: accepted and recorded, and not sent, since its recipient is suppressed. */
  | ({ readonly kind: 'suppressed' | 'replayed'; readonly emailId: EmailId } & Caller)
  | ({ readonly kind: 'refused' | 'idempotency_key_reused' } & Caller)
  | ({ readonly kind: 'queue_full' } & Caller)
  | ({ readonly kind: LimitRefusal; readonly limit: LimitHit } & Caller)

/** A worker's right to send one email for `leaseMs`. A lease with an older fence is lost. */
export type Lease = { readonly emailId: EmailId; readonly fence: number }

/** How long a lease lasts unless it is renewed. */
export const leaseMs = 60_000

export type ClaimRequest = {
  /** Mail of the apps that use it; null or absent for the apps that use the relays of the service. */
  readonly transport?: string | null
  readonly max: number
  /** No app holds more emails in one worker than this. */
  readonly perApp: number
  /** The leases that the worker holds for this transport: they are renewed, and count for their apps. */
  readonly leases: readonly (Lease & { readonly appId: AppId })[]
  /** Those that it holds for other transports: they are renewed. */
  readonly others?: readonly Lease[]
  /** Hand out a suspect although the worker holds leases. */
  readonly takeSuspect?: boolean
}

export const allLeases = ({ leases, others = [] }: ClaimRequest): readonly Lease[] => [...leases, ...others]

/** A worker that holds nothing may take a suspect, and one that has yielded to it. */
export const mayTakeSuspect = ({ takeSuspect = false, ...request }: ClaimRequest): boolean =>
  takeSuspect || allLeases(request).length === 0

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
  /** The `traceparent` of the request that queued the email. */
  readonly traceparent: string | null
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
  /**
   * Another claim may find ready mail now: this one did not look at all of it, or may not be notified of
   * mail that other processes queue.
   */
  readonly more: boolean
  /** Other transports with ready mail, of those that it saw; null as in the request. */
  readonly elsewhere: readonly (string | null)[]
  /** The leases that this call took back: of dead workers, and lapsed ones. */
  readonly lost: readonly LostLease[]
  /** The emails that this call ended itself. */
  readonly ended: readonly EndedEmail[]
}

/** `more`: another step would find work now. */
export type Maintained = { readonly more: boolean; readonly ended: readonly EndedEmail[] }

/** Mail waits for a key of the ring that a worker lacked. */
export type MissingKey = {
  readonly keyId: string
  /** Counted up to 10,000. */
  readonly emails: number
}

/** `isSkipped`: it was not checked, and the detail says why. */
export type Finding = {
  readonly check: string
  readonly ok: boolean
  readonly detail: string
  readonly isSkipped?: true
}

export type DatabaseDescription = {
  readonly kind: 'SQLite' | 'PostgreSQL'
  readonly version: string
  /** The version of the schema. */
  readonly schema: number
  readonly bytes: number
  /** The write-ahead log of SQLite, which is reused. */
  readonly logBytes: number
  /** On the disk of the database file; null where it is not known. */
  readonly freeBytes: number | null
}

/** The methods that the service uses; those of operators are in `operator-store.ts`. */
export interface Store
  extends ActivityStore,
    OperatorStore,
    PeopleStore,
    ReportStore,
    AuthHookStore,
    SigningKeyStore,
    InboxStore,
    TransportStore,
    WebhookStore {
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
   * session. `onQueued` is called when another process has queued mail; calls are merged and may be missed,
   * so also poll.
   */
  openWorkerSession(onQueued: () => void): void

  /** Rejects with `StoreUnavailable` if no email could be queued now. */
  probeWrite(): Promise<void>
  /** Depth and oldest acceptance: cheap at any depth, for metrics. */
  readQueueGauge(): Promise<QueueGauge>
  /**
   * For pages that anyone can open: rejects with `StoreUnavailable` when many such look-ups
   * wait, and never delays the other methods.
   */
  findAppBySlug(slug: string): Promise<App | null>
  /** The link domains of active apps. A look-up as above. */
  listLinkDomains(): Promise<string[]>

  /** The reference by which reports name an email. */
  makeReference(id: EmailId): Reference
  /** The email that a reference names; null if this database did not make it. */
  openReference(reference: Reference): EmailId | null

  /** The keys for which mail waits. */
  listMissingKeys(): Promise<readonly MissingKey[]>

  describeDatabase(): Promise<DatabaseDescription>
  /** Checks the database and the machine that it runs on. */
  examine(): Promise<readonly Finding[]>
  /** Milliseconds since 1970 UTC on the store's clock, which decides limits, leases and expiry. */
  now(): number
  close(): Promise<void>
}
