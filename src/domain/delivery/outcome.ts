/** The outcome of one delivery attempt, and the line that it leaves in the email's record. */

import type { Reply } from './reply.ts'
import type { ReportKind, ReportSource } from './report.ts'
import type { EndReason, FailureReason, FinalState } from './states.ts'

/**
 * `deferred` counts the attempt. `unattempted` does not: no relay was available, or the worker is
 * stopping. Both say how long to wait before the next attempt. `relay` is `host:port`, null where
 * no relay was involved.
 */
export type DeliveryOutcome =
  | { readonly kind: 'delivered'; readonly reply: Reply; readonly relay: string }
  | (Tried & {
      readonly kind: 'deferred'
      /** The connection was lost after the final dot: the relay may have taken the message. */
      readonly ambiguous: boolean
      readonly waitMs: number
    })
  | (Tried & { readonly kind: 'failed'; readonly reason: FailureReason })
  | { readonly kind: 'expired' }
  | { readonly kind: 'cancelled'; readonly reason: 'reserved_domain' }
  | (Simulated & { readonly relay: string })
  | (Tried & {
      readonly kind: 'unattempted'
      readonly waitMs: number
      /** The id of the ring key without which the email cannot be opened. */
      readonly missingKey?: string
    })

/** The end of an email of a test key, where a real one would end by a report or by a suppression. */
export type Simulated = {
  readonly kind: 'simulated'
  readonly state: Exclude<FinalState, 'delivered' | 'failed' | 'expired' | 'cancelled'>
  readonly reason: EndReason | null
  readonly reply: Reply
}

type Tried = { readonly reply: Reply; readonly relay: string | null }

/**
 * One line of an email's record: an attempt, or a report about it. `lost`: the lease was taken back before
 * the worker had recorded an outcome.
 */
export type AttemptRecord = {
  readonly at: number
  readonly outcome: Exclude<DeliveryOutcome['kind'], 'simulated'> | ReportKind | 'lost'
  readonly relay?: string
  /** The way by which a report came; absent for an attempt. */
  readonly source?: ReportSource
  readonly reply?: Reply
  readonly ambiguous?: boolean
}
