/** The reply of a relay, by any protocol, and what a failure means for the email and the relay. */

import { redact, type Source } from '../redaction/redact.ts'

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
export const noReply = (why: string, source: Source = { kind: 'other' }): Reply => ({
  code: null,
  enhanced: null,
  text: redact(why, source),
})

/**
 * How far a submission had come when it failed: `sender` and `recipient` are MAIL and RCPT. After
 * `handed-over` the relay may have taken the message.
 */
export type Stage = 'connect' | 'sender' | 'recipient' | 'handed-over'

export type FailureClass = {
  readonly permanent: boolean
  /**
   * `message`: this email alone fails. `relay`: every other email would fail the same way. `unclear`: the
   * reply names neither, and another relay may take the email.
   */
  readonly scope: 'message' | 'relay' | 'unclear'
  /** The relay cannot be used until an operator acts: another attempt at once cannot succeed. */
  readonly lasting: boolean
  /** The relay asks for fewer connections, or for fewer emails a second. */
  readonly slowDown: 'connections' | 'rate' | null
  /** The relay asks to be left alone for so long; null if it does not say. */
  readonly retryAfterMs: number | null
  /** No answer came after the message was handed over: the relay may have taken it. */
  readonly ambiguous: boolean
}
