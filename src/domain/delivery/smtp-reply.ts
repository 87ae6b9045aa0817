/**
 * The failure policy of SMTP. The reply code decides whether a failure is permanent: 5xx except 503
 * is; 4xx, 503 and every network or TLS fault are transient, and so is a reply that cannot be
 * classified. The stage and a few codes decide whose failure it is: the message's, or that of the
 * relay as a whole. (RFC 5321 §4.2.1, RFC 3463.)
 */

import { redact, type Source } from '../redaction/redact.ts'
import type { FailureClass, Reply, Stage } from './reply.ts'

const replyShape = /^(\d{3})(?:[ -]|$)(?:(\d\.\d{1,3}\.\d{1,3})(?:[ ]|$))?/

/** Whether a reason is the reply of a relay, and not a fault of the network or of TLS. */
export const isReply = (reason: string): boolean => replyShape.test(reason)

/** A relay's reply (multi-line as one text), redacted, with its codes of RFC 5321 and RFC 3463 if any. */
export function parseReply(raw: string, source: Source = { kind: 'other' }): Reply {
  const match = replyShape.exec(raw)
  const code = match?.[1] === undefined ? null : Number(match[1])
  return { code, enhanced: match?.[2] ?? null, text: redact(raw, source) }
}

/** Why a submission failed. */
export type SmtpFailure = {
  readonly stage: Stage
  readonly reply: Reply
  /** The SMTP client's own code, such as ETLS or EAUTH. */
  readonly errorCode: string | null
  /** Said by the server of the access tokens. */
  readonly retryAfterMs?: number | null
}

// The relay refuses our credentials, or our right to use it.
const refusesClient = new Set([530, 534, 535, 538])

/**
 * How a relay refuses our account and not the email, so that another relay can send it: by these codes or
 * words. Only a known service is believed, since any relay repeats the words of receivers.
 */
export type AccountRefusal = { readonly codes: readonly string[]; readonly words: readonly string[] }

const matches = ({ codes, words }: AccountRefusal, { code, enhanced, text }: Reply): boolean =>
  code !== null && (codes.includes(enhanced ?? '') || words.some((each) => text.includes(each)))

/** By these words a relay repeats the reply of a receiver, or of a check of SPF. */
const quotes = /\bsaid\b|in reply to|\bcall(?:back|out|ed)\b|\bverif|\bresponse\b|\bSPF\b/i

/** Whether a reply is about EHLO: the word by itself, not in a domain (helo.com), nor quoted. */
export const namesGreeting = (text: string): boolean =>
  /(?<![\w.@-])(?:EHLO|HELO)(?![.-]\w|[\w=])/i.test(text) && !quotes.test(text)

/**
 * Whether the relay refuses the name in EHLO. Postfix reports this only at RCPT by default. After DATA, the
 * text may quote the receiver, which judges the relay's own name.
 */
const refusesGreeting = ({ stage, reply: { code, text } }: SmtpFailure): boolean =>
  stage !== 'handed-over' && code !== null && namesGreeting(text)

/** @param refusal how the relay refuses our account; null if it is no known service */
export function classifyFailure(failure: SmtpFailure, refusal: AccountRefusal | null): FailureClass {
  const { stage, reply, errorCode, retryAfterMs = null } = failure
  const { code, enhanced, text } = reply
  const refusesAccount = refusal !== null && matches(refusal, reply)
  const isRelayFault =
    stage === 'connect' || (code !== null && refusesClient.has(code)) || refusesAccount || refusesGreeting(failure)
  const refused = code !== null && code >= 500 && code <= 599 && code !== 503
  const tlsOrLogin = code === null && (errorCode === 'ETLS' || errorCode === 'EAUTH' || /certificate/i.test(text))
  return {
    permanent: refused && !isRelayFault,
    scope: isRelayFault ? 'relay' : 'message',
    lasting: isRelayFault && (refused || tlsOrLogin || refusesAccount),
    slowDown: code === 421 || (!refused && enhanced !== null && (/^4\.7\./.test(enhanced) || enhanced === '4.5.3')),
    retryAfterMs,
    ambiguous: code === null && stage === 'handed-over',
  }
}
