/**
 * The part of a store that serves operators: apps, keys, emails, tokens and the audit. The rules of
 * `store.ts` hold. Each method with an `actor` writes the audit entry of its change in the same transaction;
 * if nothing changes, it writes none.
 */

import type { App, AppStatus } from '../domain/app/app.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import type { AuthHookName } from '../domain/auth-hooks/auth-hook-settings.ts'
import type { AttemptRecord } from '../domain/delivery/outcome.ts'
import type { EmailState, EndedEmail, EndReason, LiveState } from '../domain/delivery/states.ts'
import type { AppId, AuditId, EmailId, KeyId, TokenId } from '../domain/id.ts'
import type { Action, Actor, AuditAction, AuditEntry } from '../domain/operator/audit.ts'
import type { Role, TokenHash } from '../domain/operator/management-token.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'

/** The record of an email; it contains nothing of the email's content. */
export type EmailRecord = {
  readonly id: EmailId
  readonly app: AppId
  /** Whether a test key sent it. */
  readonly isTest: boolean
  /** The delivery key that sent it; null for an email by which an operator tries an app. */
  readonly key: KeyId | null
  readonly type: EmailType
  /** The name of its recipient (`nameRecipient`). */
  readonly recipient: string
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

/**
 * Some of the records that a query asks for, newest first. `next`: pass it as `before` for more; null at the
 * end.
 */
export type ListPage<Item, Id> = { readonly items: readonly Item[]; readonly next: Id | null }

export type EmailQuery = {
  readonly app?: AppId
  /** Those of test keys alone. Otherwise the others; for a key or a recipient both. */
  readonly tests?: boolean
  readonly key?: KeyId
  readonly type?: EmailType
  readonly state?: EmailState
  /** The name that `nameRecipient` returns. */
  readonly recipient?: string
  /** Accepted at this time or later, by the time that the id holds. */
  readonly since?: number
  /** Accepted before this time. */
  readonly until?: number
  /** A part of a reply, or of the name of a relay, in any case. */
  readonly reply?: string
  readonly before?: EmailId
  /**
   * The most items of a page. It may hold fewer, also none, and yet have a `next`: a step reads a bounded
   * number of rows.
   */
  readonly limit: number
}

export type KeyRecord = {
  readonly id: KeyId
  readonly app: AppId
  /** A test key, which sends for the test side of its app. */
  readonly isTest: boolean
  readonly name: string | null
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
  /** The key that this one replaces. */
  readonly replaces: KeyId | null
  /** The auth server that posts with it; null for a key of the app itself. */
  readonly hook: AuthHookName | null
  /** The networks from which requests may use it; null for all. */
  readonly networks: readonly string[] | null
}

/** A key that is about to expire. `isReplaced`: a newer key has taken its place. */
export type ExpiringKey = KeyRecord & { readonly isReplaced: boolean }

export type NewKeyRecord = {
  readonly app: AppId
  readonly isTest?: boolean
  readonly hash: KeyHash
  /** No other key of the app that has not ended may have it. */
  readonly name: string | null
  readonly expiresAt: number | null
  readonly hook?: AuthHookName
  /** The secret by which the auth server signs, sealed; absent if it sends the key itself. */
  readonly sealed?: string
  /** Null or absent for all. */
  readonly networks?: readonly string[] | null
}

/** Properties that are absent stay as they are. */
export type KeyChange = {
  readonly name?: string
  readonly expiresAt?: number | null
  readonly networks?: readonly string[] | null
}

export type KeyReplacement = {
  readonly hash: KeyHash
  readonly expiresAt: number | null
  readonly oldExpiresAt: number
  readonly sealed?: string
}

type QueueCount = { readonly app: AppId; readonly state: LiveState; readonly count: number }

export type QueueGauge = {
  readonly depth: number
  readonly oldestAcceptedAt: number | null
  /** When the first link of the queue expires. */
  readonly firstExpiresAt: number | null
}

export type QueueSummary = QueueGauge & {
  readonly nextAttemptAt: number | null
  readonly counts: readonly QueueCount[]
  /** By the bounds of `queueAgesMs`. */
  readonly ages: readonly { readonly app: AppId; readonly counts: readonly number[] }[]
  readonly late: readonly LateMail[]
}

/** An active app with waiting mail whose attempt has been due since `since`. */
type LateMail = { readonly app: AppId; readonly since: number }

/** Counts of the whole queue, cheap enough for every scrape. */
export type QueueMeasures = QueueGauge & {
  /** Every email of the queue counts once; `held`: its app is disabled. */
  readonly states: Readonly<Record<LiveState | 'held', number>>
  readonly late: readonly LateMail[]
  /** The free space of the database's disk; null where Postern cannot see it. */
  readonly diskFreeBytes: number | null
}

export type UsageByApp = ReadonlyMap<AppId, UsageDay['counts']>

export type UsageDay = { readonly day: string; readonly counts: Readonly<Record<string, number>> }

/** The result of an operator's command on one email. */
export type EmailChange = 'done' | 'not_found' | 'finished' | 'sending' | 'not_deferred'

export type RetryStep = { readonly retried: number; readonly next: EmailId | null }

/** `ifVersion`: change the app only if it has this version. */
export type AppChange = {
  readonly settings?: AppSettings
  readonly status?: AppStatus
  readonly ifVersion?: number
}

export type TokenRecord = {
  readonly id: TokenId
  readonly name: string
  readonly role: Role
  /** The apps that it is for; null: the whole service. */
  readonly apps: readonly AppId[] | null
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt: number
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

export type NewTokenRecord = Pick<TokenRecord, 'name' | 'role' | 'apps' | 'expiresAt'> & {
  readonly hash: TokenHash
}

export type AuditQuery = {
  readonly app?: AppId
  readonly actions?: readonly AuditAction[]
  /** A part of the name, in any case. */
  readonly actor?: string
  /** Made at this time or later. */
  readonly since?: number
  /** Made before this time. */
  readonly until?: number
  readonly before?: AuditId
  readonly limit: number
}

export interface OperatorStore {
  /** The app is active, unless `status` says otherwise. Null if the slug is taken. */
  createApp(slug: string, settings: AppSettings, actor: Actor, status?: AppStatus): Promise<App | null>
  /**
   * A change that changes nothing keeps the version. Null if there is no such app; `stale` if its version is
   * not `ifVersion`.
   */
  updateApp(id: AppId, change: AppChange, actor: Actor): Promise<App | 'stale' | null>
  /**
   * Removes the app's keys and frees its slug at once; `cancelDeletedAppMail` and `maintain` cancel its mail,
   * and `maintain` removes its records and then the app. `active` if it is active, null if there is no such
   * app.
   */
  deleteApp(id: AppId, actor: Actor): Promise<'deleted' | 'active' | null>
  /** Cancels one step of a deleted app's mail, and returns it. */
  cancelDeletedAppMail(id: AppId): Promise<readonly EndedEmail[]>
  findApp(idOrSlug: string): Promise<App | null>
  listApps(): Promise<readonly App[]>

  /** `too_many` if the app has `keysMax` keys that work. Null if there is no such app. */
  createKey(key: NewKeyRecord, actor: Actor): Promise<KeyRecord | 'name_taken' | 'too_many' | null>
  findKey(id: KeyId): Promise<KeyRecord | null>
  findKeyByHash(hash: KeyHash): Promise<KeyRecord | null>
  /** At most `max` keys after one of them, in the order of their ids; all by default. */
  listKeys(app: AppId, after?: KeyId | null, max?: number): Promise<readonly KeyRecord[]>
  /**
   * The keys of all apps that expire from now to `until` and are not revoked. A replaced key expires on
   * purpose: it is listed if it was used since and either lately, or its successor never was.
   */
  listExpiringKeys(until: number): Promise<readonly ExpiringKey[]>
  /** The keys of all apps that an actor of this name made and that work. */
  listKeysMadeBy(name: string): Promise<readonly KeyRecord[]>
  /** Null if there is no such key; `ended` if it is revoked or has expired. */
  updateKey(id: KeyId, change: KeyChange, actor: Actor): Promise<KeyRecord | 'name_taken' | 'ended' | null>
  /**
   * Makes another key of the same app and name, and lets the old one end at `oldExpiresAt` if it does not end
   * before. Null if there is no such key; `ended` if it is revoked or has expired.
   */
  replaceKey(id: KeyId, next: KeyReplacement, actor: Actor): Promise<KeyRecord | 'ended' | 'too_many' | null>
  /** Null if there is no such key. Takes effect for the next request in every process. */
  revokeKey(id: KeyId, actor: Actor): Promise<KeyRecord | null>

  findEmail(id: EmailId): Promise<EmailRecord | null>
  listEmails(query: EmailQuery): Promise<ListPage<EmailRecord, EmailId>>
  /** The name by which records know a recipient: a keyed hash of the address. */
  nameRecipient(to: EmailAddress): string
  retryEmail(id: EmailId, actor: Actor): Promise<EmailChange>
  cancelEmail(id: EmailId, actor: Actor): Promise<EmailChange>
  /**
   * Makes deferred mail due now, except suspects, of some apps or (null) of all: one step through the queue,
   * in the order of ids, after `after`. `next` is where the next step begins; null at the end. With `actor`
   * null, an earlier step has written the audit entry.
   */
  retryDeferred(apps: readonly AppId[] | null, after: EmailId | null, actor: Actor | null): Promise<RetryStep>

  /** Deletes records of a recipient's finished emails. Returns how many: `stepMax` if there may be more. */
  deleteRecords(recipient: string): Promise<number>
  /**
   * Clears the recipient of its refused requests. A step reads `stepMax` after this request; `next` is where
   * to go on, null at the end.
   */
  clearRefusedRecipient(
    recipient: string,
    after: string | null,
  ): Promise<{ readonly cleared: number; readonly next: string | null }>

  summariseQueue(): Promise<QueueSummary>
  measureQueue(): Promise<QueueMeasures>
  readUsage(app: AppId): Promise<readonly UsageDay[]>
  /** The counts of the current day (UTC) of these apps; null for all. */
  readUsageToday(apps: readonly AppId[] | null): Promise<UsageByApp>
  /** Their emails that were delivered, bounced or complained of in the last `reportedDays`. */
  readReportedUsage(apps: readonly AppId[] | null): Promise<UsageByApp>

  /** `name_taken` if a token of this name has not ended. */
  createToken(token: NewTokenRecord, actor: Actor): Promise<TokenRecord | 'name_taken'>
  /** Also a token that has ended. */
  findTokenByHash(hash: TokenHash): Promise<TokenRecord | null>
  listTokens(): Promise<readonly TokenRecord[]>
  /** Null if there is no such token. */
  revokeToken(id: TokenId, actor: Actor): Promise<TokenRecord | null>
  /** Records that a token was used now. */
  noteTokenUse(id: TokenId): Promise<void>

  /** The ids that begin so, two at most: `em_01m89zq3bs0000` names an email if there is only one. */
  findIdsFrom(start: string): Promise<readonly string[]>

  /** Writes an entry for an action that changes nothing in the store. */
  recordAction(action: Action, actor: Actor): Promise<void>
  /**
   * The most that the entries of one of these apps and actors have added to the audit today, in characters.
   */
  readAuditedToday(owners: readonly string[]): Promise<number>
  listAudit(query: AuditQuery): Promise<ListPage<AuditEntry, AuditId>>
}
