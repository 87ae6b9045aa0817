/**
 * The life of one email (docs/delivery-states.md draws it), and what an attempt can come to.
 * `delivered` means that the next hop accepted it: 250 after DATA. What happens behind the relay
 * is not known here.
 */
import type { EmailAddress } from '../request/email-address.ts'

/** What is sealed at rest and wiped when the email is finished. */
export type EmailContent = {
  readonly to: EmailAddress
  readonly url: string
  readonly organisationName?: string
  readonly inviterName?: string
  /** `url` leads to our page: the email says which host that is. */
  readonly hosted?: true
  /** The right side of the Message-ID, fixed when the email is accepted. */
  readonly messageIdDomain: string
}

export const emailStates = [
  'queued',
  'sending',
  'deferred',
  'delivered',
  'failed',
  'expired',
  'cancelled',
] as const
export type EmailState = (typeof emailStates)[number]
export type FinalState = 'delivered' | 'failed' | 'expired' | 'cancelled'

/** Why an email failed for good. */
type FailureReason = 'refused_by_relay' | 'retries_exhausted' | 'workers_lost' | 'unreadable'

/**
 * What one attempt came to. `deferred` counts the attempt, `unattempted` gives it back (the relay as
 * a whole was unavailable, or the worker is stopping), with the time to wait before the next one.
 */
export type DeliveryOutcome =
  | { readonly kind: 'delivered'; readonly reply: string; readonly relay: string }
  | {
      readonly kind: 'deferred'
      readonly reply: string
      readonly relay: string
      readonly ambiguous: boolean
      readonly waitMs: number
    }
  | {
      readonly kind: 'failed'
      readonly reply: string
      readonly relay: string
      readonly reason: FailureReason
    }
  | { readonly kind: 'expired' }
  | { readonly kind: 'unattempted'; readonly reply: string; readonly waitMs: number }

/** One line of an email's record: when, through which relay, with which reply. */
export type AttemptRecord = {
  readonly at: number
  readonly outcome: DeliveryOutcome['kind'] | 'lost'
  readonly relay?: string
  readonly reply?: string
  readonly ambiguous?: boolean
}
