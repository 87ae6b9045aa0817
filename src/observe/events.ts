/**
 * Everything that happens in a process and that somebody may want to see, as one stream of typed
 * events. The parts of Postern emit; log, metrics, charts and open pages subscribe. No event holds a key,
 * token, link or recipient.
 */

import type { AuthHookName } from '../domain/auth-hooks/auth-hook-settings.ts'
import { postingSystems } from '../domain/auth-hooks/auth-hooks.ts'
import type { FailureCause } from '../domain/delivery/failure-cause.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { ReportKind, ReportSource } from '../domain/delivery/report.ts'
import type { EndedEmail, LostLease } from '../domain/delivery/states.ts'
import type { AppId, EmailId, KeyId } from '../domain/id.ts'
import type { SignInMethod } from '../domain/operator/sign-in.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import type { RefusalCode, refusals } from '../domain/request/rejection.ts'
import type { WebhookEvent } from '../domain/webhooks/webhook.ts'
import type { RecordedReport } from '../store/report-store.ts'

/** `api`: an app posted to `/v1/email`. `smtp`: a message over SMTP. Others: an auth server that posted. */
export type RequestSource = 'api' | 'smtp' | AuthHookName
export const requestSources: readonly RequestSource[] = ['api', ...postingSystems.map(({ name }) => name), 'smtp']

type Answered = {
  readonly kind: 'request_answered'
  readonly requestId: string
  /** Null if the request is not traced, or not sampled. */
  readonly traceId: string | null
  /** Null if the key is unknown, or the store did not answer. */
  readonly appId: AppId | null
  readonly keyId: KeyId | null
  readonly source: RequestSource
  /** The name that an auth server gives to its message; null if it names none, and for an app. */
  readonly message: string | null
  /** Time from the complete body to the answer. */
  readonly tookMs: number
}
type RequestAccepted = Answered & { readonly status: 202; readonly emailId: EmailId } & (
    | {
        readonly code: 'accepted'
        /** The tag that the request asked for; `unknown` for what is none of ours, `none` without one. */
        readonly language: string
      }
    | { readonly code: 'replayed' }
  )
export type RequestRefused = Answered & {
  readonly status: Exclude<(typeof refusals)[RefusalCode]['status'], 202>
  readonly code: RefusalCode
  /** The issues of a 400, as `field code`. */
  readonly issues: readonly string[]
  /** The scheme, host and port of the link; null if there was none that can be read. */
  readonly origin: string | null
  /** The name of the recipient (`nameRecipient`); null if there was none that is valid. */
  readonly recipient: string | null
}
/** `POST /v1/email` was answered, or a call of an auth server. */
export type RequestAnswered = RequestAccepted | RequestRefused

/**
 * An outcome is on record. `sinceAcceptedMs` by the store's clock; `tookMs` is the time of the attempt
 * itself.
 */
export type AttemptRecorded = {
  readonly kind: 'attempt_recorded'
  readonly emailId: EmailId
  readonly appId: AppId
  readonly type: EmailType
  readonly attempt: number
  /** The trace id of the request that queued the email. */
  readonly traceId: string | null
  readonly outcome: DeliveryOutcome
  readonly sinceAcceptedMs: number
  readonly tookMs: number
}

export type RelayChanged = {
  readonly kind: 'relay_changed'
  readonly relay: string
  readonly available: boolean
  readonly reason: string
}

/** A report about an email came. `finding` and `cause` are what it says; nothing of its text is in here. */
export type ReportReceived = {
  readonly kind: 'report_received'
  readonly source: ReportSource
  readonly finding: ReportKind | 'other'
  /** The cause of a bounce. */
  readonly cause: FailureCause | null
  /** `unmatched`: it names no email. `no_report`: it says nothing of its delivery. */
  readonly result: RecordedReport['kind'] | 'unmatched' | 'no_report'
  /** It proves that the recipient's mailbox does not exist. */
  readonly isGone: boolean
  readonly emailId: EmailId | null
  readonly appId: AppId | null
}

/**
 * Log lines can no longer be written to standard output, or (`reason` null) they can again. `lost`: how many
 * were lost since the start.
 */
export type LogChanged = {
  readonly kind: 'log_changed'
  readonly reason: string | null
  readonly lost: number
}

/** A webhook was posted, or could not be. `result`: the status, or why there was none. */
export type WebhookTried = {
  readonly kind: 'webhook_tried'
  readonly appId: AppId
  /** Null for a test. */
  readonly emailId: EmailId | null
  readonly event: WebhookEvent
  /** `failed`: it is tried again. */
  readonly outcome: (typeof webhookOutcomes)[number]
  readonly result: string
  readonly tries: number
  readonly tookMs: number
}
export const webhookOutcomes = ['sent', 'failed', 'given_up'] as const

/** An alert was posted to the operators' receiver, or could not be; then it is tried again. */
type AlertTried = {
  readonly kind: 'alert_tried'
  readonly condition: string
  readonly isTaken: boolean
  readonly result: string
}

/** The workers that held these emails died or stopped renewing their leases; the emails are sent again. */
export type LeasesTakenBack = { readonly kind: 'leases_taken_back'; readonly lost: readonly LostLease[] }

/**
 * The management API was asked for an operation. `actor` is the name of a token; null if there was no valid
 * one.
 */
export type OperationAnswered = {
  readonly kind: 'operation_answered'
  readonly requestId: string
  readonly operation: string
  readonly actor: string | null
  readonly status: number
  /** The code of the error; null if there was none. */
  readonly code: string | null
}

/** Somebody signed in to the console, or was refused. */
export type ConsoleSignIn = {
  readonly kind: 'console_sign_in'
  readonly method: SignInMethod
  readonly result: (typeof signInResults)[number]
  readonly requestId: string
}
export const signInResults = ['signed_in', 'refused'] as const

/** A hosted link was shown (`opened`), its button was pressed, or there was nothing to show. */
export const linkResults = ['opened', 'pressed', 'expired', 'unknown'] as const
type LinkResult = (typeof linkResults)[number]

export type PosternEvent =
  | RequestAnswered
  | OperationAnswered
  | AttemptRecorded
  | ReportReceived
  | RelayChanged
  /** A relay in a private network gets emails without TLS. */
  | { readonly kind: 'relay_in_clear'; readonly relay: string }
  | WebhookTried
  | AlertTried
  /** A call to the reports listener did not prove itself. */
  | {
      readonly kind: 'provider_call_refused'
      readonly provider: string
      readonly requestId: string
      /** Why the call cannot be checked now; null if it is wrong. */
      readonly reason: string | null
    }
  /** A worker asked for due mail, and got this many emails. */
  | { readonly kind: 'mail_claimed'; readonly count: number; readonly tookMs: number }
  /** The store wrote a group of calls as one transaction, or failed to. */
  | { readonly kind: 'group_written'; readonly calls: number; readonly tookMs: number }
  | ConsoleSignIn
  | { readonly kind: 'link_viewed'; readonly result: LinkResult }
  /** Emails ended without an outcome of a worker: expired, cancelled, or failed without an attempt. */
  | { readonly kind: 'emails_ended'; readonly ended: readonly EndedEmail[] }
  /** A request was answered with 503. */
  | {
      readonly kind: 'store_unavailable'
      readonly requestId: string
      readonly error: Error
      readonly work: 'request' | 'link' | 'operation' | 'page'
    }
  /** Backpressure: requests wait because this process delays its own mail, or they no longer do. */
  | { readonly kind: 'backpressure_changed'; readonly active: boolean }
  | LeasesTakenBack
  /** Another process sends for this SQLite database, or this one has taken over. */
  | { readonly kind: 'standby_changed'; readonly standby: boolean }
  /** On PostgreSQL: whether this worker has a session, by which others learn of its death. */
  | { readonly kind: 'session_changed'; readonly available: boolean }
  /** The store did not confirm an outcome, because the lease was lost. */
  | { readonly kind: 'outcome_unconfirmed'; readonly emailId: EmailId }
  /**
   * A claim, a renewal or an outcome could not be written; sending stops until one can. Emitted once for one
   * outage.
   */
  | { readonly kind: 'store_write_failed'; readonly error: unknown }
  /** Mail waits for a key that this process lacks. Emitted once for each key. */
  | { readonly kind: 'key_missing'; readonly keyId: string; readonly emails: number }
  /** The key ring cannot open the secret of an auth server, which is refused. */
  | { readonly kind: 'auth_hook_secret_closed'; readonly keyId: KeyId }
  /** The key ring cannot open the secret of an app's webhooks, so none of them is sent. */
  | { readonly kind: 'webhook_secret_closed'; readonly appId: AppId }
  /** A webhook was not stored, because too many of the app wait or the store failed. */
  | {
      readonly kind: 'webhook_lost'
      readonly appId: AppId
      readonly emailId: EmailId
      readonly event: WebhookEvent
    }
  /** The relays of a transport cannot be used, so the mail of its apps waits. */
  | { readonly kind: 'transport_closed'; readonly transport: string; readonly reason: string }
  /** The key ring cannot open a key that signs mail, so the mail of its domain waits. */
  | { readonly kind: 'signing_key_closed'; readonly domain: string; readonly selector: string }
  | LogChanged
  /** The process stopped before these attempts were recorded. */
  | { readonly kind: 'attempts_unrecorded'; readonly count: number }
  /** An error that nobody expected; with a request id, the request was answered with 500. */
  | { readonly kind: 'bug'; readonly doing: string; readonly error: unknown; readonly requestId?: string }

export type Emit = (event: PosternEvent) => void

export class EventStream {
  readonly #listeners: Emit[] = []

  /** A listener that fails costs what it would have shown, not the work that it tells of. */
  readonly emit: Emit = (event) => {
    for (const listener of this.#listeners) {
      try {
        listener(event)
      } catch (error) {
        if (event.kind !== 'bug') this.emit({ kind: 'bug', doing: `telling of "${event.kind}"`, error })
      }
    }
  }

  subscribe(listener: Emit): void {
    this.#listeners.push(listener)
  }
}
