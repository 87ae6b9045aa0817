/**
 * The part of a store that takes reports about emails, and suppresses recipients. The rules of `store.ts`
 * hold.
 */
import type { ReportFinding, ReportSource } from '../domain/delivery/report.ts'
import type { FinalState, SuppressionReason } from '../domain/delivery/states.ts'
import type { Destination, SuppressionTerms } from '../domain/delivery/suppression.ts'
import type { AppId, EmailId, SuppressionId } from '../domain/id.ts'
import type { Actor } from '../domain/operator/audit.ts'
import type { EmailRecord, ListPage } from './operator-store.ts'

export type ReportRecord = {
  readonly email: EmailId
  readonly source: ReportSource
  readonly finding: ReportFinding
  readonly destination: Destination
  /** The recipient, if the report names it: sealed, for the webhook of the app. */
  readonly sealedTo?: string
}

/** `massive`: so many mailboxes are said to be gone that none is believed (`isMassBounce`). */
export type Strike = { readonly kind: 'suppressed'; readonly until: number } | { readonly kind: 'none' | 'massive' }

/**
 * `already`: the record has this report. `waiting`: the email is still in the queue, so report it later.
 * `stale`: it was accepted more than `reportDays` ago. `unknown`: there is no record of it.
 */
export type RecordedReport =
  | {
      readonly kind: 'recorded'
      readonly app: AppId
      readonly state: FinalState
      readonly strike: Strike
      /** So many webhooks of the app wait that it is not notified. */
      readonly isWebhookLost: boolean
    }
  | { readonly kind: 'already' | 'waiting' | 'stale' | 'unknown' }

/** When the last report of a source came about an email that there is, to the minute. */
export type HeardSource = { readonly source: ReportSource; readonly heardAt: number }

export type SuppressionRecord = SuppressionTerms & {
  readonly id: SuppressionId
  /** Null: of all apps. */
  readonly app: AppId | null
  /** When the last strike came, or an operator changed it. */
  readonly at: number
  readonly destination: Destination
  /** When the last bounce came that counted; 0 for none. */
  readonly bouncedAt: number
  readonly email: EmailId | null
  /** The reply that the last report quoted. */
  readonly reply: string | null
}

export type SuppressionQuery = {
  /** Null: of any app, and those of all apps. */
  readonly apps: readonly AppId[] | null
  /** False: without those of all apps. */
  readonly allApps?: boolean
  readonly reason?: SuppressionReason
  readonly destination?: Destination
  /** Struck or changed at this time or later, and before that one. */
  readonly since?: number
  readonly until?: number
}

export interface ReportStore {
  /** The email of a report; like `findEmail`, but it waits for no operator. */
  findReported(id: EmailId): Promise<EmailRecord | null>
  recordReport(report: ReportRecord): Promise<RecordedReport>
  /** The sources that were ever heard. */
  listReportSources(): Promise<HeardSource[]>
  /** A strike for the recipient of an email that a relay refused, because there is no such mailbox. */
  strikeRefused(refused: {
    readonly email: EmailId
    readonly destination: Destination
    /** The text of the relay's reply. */
    readonly reply: string
  }): Promise<Strike>

  findSuppression(id: SuppressionId): Promise<SuppressionRecord | null>
  /**
   * Those of a recipient that have not ended, newest first, at most 100: of these apps, where null stands for
   * all apps together; or of any.
   */
  findSuppressions(recipient: string, apps?: readonly (AppId | null)[]): Promise<SuppressionRecord[]>
  /** Those that have not ended, newest first. */
  listSuppressions(
    query: SuppressionQuery & { readonly before?: SuppressionId; readonly limit: number },
  ): Promise<ListPage<SuppressionRecord, SuppressionId>>
  /** For a recipient by its name; null if there is no such app, `too_many` if it has `suppressionsMax`. */
  setSuppression(
    suppression: {
      readonly app: AppId | null
      readonly recipient: string
      readonly destination: Destination
      readonly until: number
    },
    actor: Actor,
  ): Promise<SuppressionRecord | 'too_many' | null>
  /** Mail goes to the recipient again, and strikes are forgotten. Null if there is no such suppression. */
  removeSuppression(id: SuppressionId, actor: Actor): Promise<SuppressionRecord | null>
  /** Removes those of a recipient in every app, also ended ones. Returns how many. */
  removeSuppressionsOf(recipient: string, actor: Actor): Promise<number>
  /**
   * Removes those that match, also ended ones, whose bounces would count. A step reads `stepMax` after this
   * id; `next` is where to go on, null at the end.
   */
  clearSuppressions(
    query: SuppressionQuery,
    step: { readonly actor: Actor; readonly after: SuppressionId | null },
  ): Promise<{ readonly removed: number; readonly next: SuppressionId | null }>
}
