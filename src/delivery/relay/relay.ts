/**
 * The contract of a relay: an SMTP server, a mail API, or the dev inbox. A relay bounds its own connections
 * and rate, and says how many messages it can take now.
 */
import type { Senders } from '../../domain/app/envelope.ts'
import type { Simulated } from '../../domain/delivery/outcome.ts'
import type { Reference } from '../../domain/delivery/reference.ts'
import type { MeasuredRelay } from '../../domain/delivery/relay-state.ts'
import type { FailureClass, Reply, Stage } from '../../domain/delivery/reply.ts'
import type { EmailId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { EmailContent } from '../../domain/request/email-content.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import type { Rendered } from '../../templates/emails/render-email.ts'

/** An email on its way: the envelope with one recipient, and the bytes that go over the wire. */
export type Message = Senders & {
  readonly to: EmailAddress
  readonly id: EmailId
  /** The number of this attempt, from 1. */
  readonly attempt: number
  /** The envelope id (RFC 3461), which reports repeat. */
  readonly reference: Reference
  readonly bytes: Buffer
  /** Records of replies must not hold any of it. */
  readonly content: EmailContent
  readonly describe: () => MessageDetails
}

/** The email behind a message, for the dev inbox and for relays that compose messages themselves. */
export type MessageDetails = Rendered & {
  readonly id: EmailId
  readonly app: string
  readonly slug: string
  readonly from: { readonly name: string; readonly address: string }
  readonly replyTo: string | null
  /** Those that no other field holds. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly type: EmailType
  readonly url: string
  /** The one-time code; null without one. */
  readonly code: string | null
  readonly expiresAt: number
}

/** Whether a message may still be handed over. */
export type Clearance = {
  /** When the link expires, on the clock of `performance.now()`. */
  readonly deadlineMs: number
  /** False after a pause longer than the lease: another worker may have sent the email by then. */
  readonly isLeaseValid: () => boolean
}

/** The result of submitting a message to a relay. */
export type Submission =
  | { readonly kind: 'accepted'; readonly reply: Reply }
  | {
      readonly kind: 'failed'
      readonly reply: Reply
      readonly stage: Stage
      readonly failureClass: FailureClass
      /** Whether the relay takes other mail, so that the refusal is meant for this email. */
      readonly takesOthers?: boolean
    }
  /** The link expired before the message was handed over. */
  | { readonly kind: 'expired' }
  | Simulated
  /** The worker is stopping or has lost its lease, and nothing was handed over. */
  | { readonly kind: 'stopped'; readonly why: string }

export const workerStopped: Submission = { kind: 'stopped', why: 'the worker stopped' }
export const leaseLost: Submission = { kind: 'stopped', why: 'the lease was lost before the message was sent' }

/** It is not available while its breaker is open: it then takes single probes only. */
export interface Relay extends MeasuredRelay {
  /** Whether it gets mail for reserved domains (`isReservedDomain`). */
  readonly takesReserved: boolean
  /** How many submissions may be in progress; those that began before its breaker opened do not count. */
  capacity(): number
  /** How many submissions are in progress. */
  inProgress(): number
  /** How many more submissions may begin now. */
  free(): number
  /** Whether all its connections are busy, and none has finished a submission for a while. */
  isStuck(): boolean
  /** Milliseconds until an unavailable relay takes its next probe; 0 while it is available. */
  probeInMs(): number
  /** Whether the others come first: it has refused all mail lately, or would let an email wait. */
  isLast(): boolean
  /** Call it only while `free()` is positive. */
  submit(message: Message, clearance: Clearance): Promise<Submission>
  /** Aborts submissions in progress and ends the sessions. */
  close(): void
}

/** The relays as they are asked. */
export const inOrder = (relays: readonly Relay[]): readonly Relay[] =>
  relays.length === 1 ? relays : relays.toSorted((a, b) => Number(a.isLast()) - Number(b.isLast()))
