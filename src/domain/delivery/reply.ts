/**
 * The reply of a relay, whatever protocol it speaks, and what a failure means for the email and the relay.
 */

import type { EmailContent } from './email-content.ts'
import { redact } from './redact.ts'

/**
 * A reply of a relay, redacted: one line of at most 300 characters without addresses, links and
 * tokens. `code` and `enhanced` stand in `text` too. Without a reply `code` is null, and `text`
 * says what ended the attempt.
 */
export type Reply = {
  readonly code: number | null
  readonly enhanced: string | null
  readonly text: string
}

/** Stands for a reply that never came: a fault of network or TLS, or a reason of our own. */
export const noReply = (why: string): Reply => ({
  code: null,
  enhanced: null,
  text: redactReply(why, null),
})

/** How far a submission had come when it failed. After `handed-over` the relay may have taken the message. */
export type Stage = 'connect' | 'envelope' | 'handed-over'

export type FailureClass = {
  readonly permanent: boolean
  /** `relay`: every other email would fail the same way. */
  readonly scope: 'message' | 'relay'
  /** The relay cannot be used until an operator acts: another attempt at once cannot succeed. */
  readonly lasting: boolean
  /** The relay asks for fewer connections. */
  readonly slowDown: boolean
  /** The relay asks to be left alone for so long; null if it does not say. */
  readonly retryAfterMs: number | null
  /** No answer came after the message was handed over: the relay may have taken it. */
  readonly ambiguous: boolean
}

/** At most this much of a reply is read: a relay may send up to 1 MiB. */
const rawMax = 2000
const textMax = 300

/** One line, bounded, without addresses, links and tokens: fit for records and logs. */
export const redactReply = (text: string, email: EmailContent | null): string =>
  redact(boundedLine(text), email).slice(0, textMax)

/**
 * Without characters that no record keeps: a relay could put them between the letters of an address. A word
 * that the bound cuts is left out, because a part of an address does not look like one.
 */
function boundedLine(text: string): string {
  const line = text
    .slice(0, rawMax)
    .replace(/\p{Cf}/gu, '')
    .replace(/\s+/g, ' ')
    .replace(/\p{Cc}/gu, '')
    .toWellFormed()
  return text.length > rawMax && line.includes(' ') ? line.slice(0, line.lastIndexOf(' ') + 1) : line
}
