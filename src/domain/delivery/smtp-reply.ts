/**
 * The failure policy of SMTP. The reply code decides whether a failure is permanent: 5xx except 503
 * is; 4xx, 503 and every network or TLS fault are transient, and so is a reply that cannot be
 * classified. The stage and a few codes decide whose failure it is: the message's, or that of the
 * relay as a whole. (RFC 5321 §4.2.1, RFC 3463.)
 */

import type { EmailContent } from './email-content.ts'
import { redact } from './redact.ts'

/** How far an SMTP conversation had come when it ended. */
export type SmtpStage = 'connect' | 'envelope' | 'final-dot'

/**
 * A reply of a relay, redacted: one line of at most 300 characters without addresses, links and
 * tokens. `code` and `enhanced` stand in `text` too. Without a reply `code` is null, and `text`
 * says what ended the attempt.
 */
export type SmtpReply = {
  readonly code: number | null
  readonly enhanced: string | null
  readonly text: string
}

const replyShape = /^(\d{3})(?:[ -]|$)(?:(\d\.\d{1,3}\.\d{1,3})(?:[ ]|$))?/

/**
 * A relay's reply (multi-line as one text), with its RFC 5321 and RFC 3463 codes where it has them, and
 * without what the email that it answers holds.
 */
export function parseReply(raw: string, email: EmailContent | null = null): SmtpReply {
  const match = replyShape.exec(raw)
  const code = match?.[1] === undefined ? null : Number(match[1])
  return { code, enhanced: match?.[2] ?? null, text: redactReply(raw, email) }
}

/** Stands for a reply that never came: a fault of network or TLS, or a reason of our own. */
export const noReply = (why: string): SmtpReply => ({
  code: null,
  enhanced: null,
  text: redactReply(why, null),
})

/** Why a submission failed. `errorCode` is the SMTP client's own code, such as ETLS or EAUTH. */
export type SmtpFailure = {
  readonly stage: SmtpStage
  readonly reply: SmtpReply
  readonly errorCode: string | null
}

export type FailureClass = {
  readonly permanent: boolean
  /** `relay`: every other email would fail the same way. */
  readonly scope: 'message' | 'relay'
  /** The relay cannot be used until an operator acts: another attempt at once cannot succeed. */
  readonly lasting: boolean
  /** The relay asks for fewer connections. */
  readonly slowDown: boolean
  /** The connection was lost after the final dot: the relay may have taken the message. */
  readonly ambiguous: boolean
}

// The relay refuses our credentials, or our right to use it.
const refusesClient = new Set([530, 534, 535, 538])

export function classifyFailure({ stage, reply, errorCode }: SmtpFailure): FailureClass {
  const { code, enhanced, text } = reply
  const isRelayFault = stage === 'connect' || (code !== null && refusesClient.has(code))
  const refused = code !== null && code >= 500 && code <= 599 && code !== 503
  const tlsOrLogin =
    code === null && (errorCode === 'ETLS' || errorCode === 'EAUTH' || /certificate/i.test(text))
  return {
    permanent: refused && !isRelayFault,
    scope: isRelayFault ? 'relay' : 'message',
    lasting: isRelayFault && (refused || tlsOrLogin),
    slowDown:
      code === 421 || (!refused && enhanced !== null && (/^4\.7\./.test(enhanced) || enhanced === '4.5.3')),
    ambiguous: code === null && stage === 'final-dot',
  }
}

/**
 * The cause of a refusal, as far as its enhanced code names it (RFC 3463 §3, and the IANA registry of codes).
 */
export const failureCauses = ['no_mailbox', 'mailbox_full', 'policy', 'unreachable', 'unknown'] as const
export type FailureCause = (typeof failureCauses)[number]

const causes: readonly [RegExp, FailureCause][] = [
  [/^[45]\.(1\.(1|2|3|6|10)|2\.1|7\.(13|17|18))$/, 'no_mailbox'],
  [/^[45]\.2\.2$/, 'mailbox_full'],
  [/^[45]\.7\./, 'policy'],
  [/^[45]\.4\./, 'unreachable'],
]

export const findCause = ({ enhanced }: SmtpReply): FailureCause =>
  causes.find(([shape]) => shape.test(enhanced ?? ''))?.[1] ?? 'unknown'

/** At most this much of a reply is read: a relay may send up to 1 MiB. */
const rawMax = 2000
const textMax = 300

/** One line, bounded, without addresses, links and tokens: fit for records and logs. */
const redactReply = (text: string, email: EmailContent | null): string =>
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
