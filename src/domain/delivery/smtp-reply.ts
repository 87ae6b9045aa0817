/**
 * The failure policy of SMTP. The reply code decides whether a failure is permanent: 5xx except 503
 * is; 4xx, 503 and every network or TLS fault are transient, and so is a reply that cannot be
 * classified. `blame.ts` says whose failure it is. (RFC 5321 §4.2.1, RFC 3463.)
 */

import { redact, type Source } from '../redaction/redact.ts'
import { blame, type Named, readSlowDown } from './blame.ts'
import type { FailureClass, Reply, Stage } from './reply.ts'

const replyShape = /^(\d{3})(?:[ -]|$)(?:#?(\d\.\d{1,3}\.\d{1,3})(?:[ ]|$))?/

/** Whether a reason is the reply of a relay, and not a fault of the network or of TLS. */
export const isReply = (reason: string): boolean => replyShape.test(reason)

/** The codes at the beginning of a reply: `451 4.7.1`. */
export const readCodes = (reply: string): string => replyShape.exec(reply)?.[0].trim() ?? ''

/** Replies with the same codes are alike, whatever ids they contain. */
export const kindOfReply = (reply: string): string => readCodes(reply) || reply

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
  readonly named?: Named
  /** Said by the server of the access tokens. */
  readonly retryAfterMs?: number | null
}

/**
 * How a relay refuses our account and not the email, so that another relay can send it: by these codes or
 * words. Only a known service is believed, since any relay repeats the words of receivers.
 */
export type AccountRefusal = { readonly codes: readonly string[]; readonly words: readonly string[] }

const matches = ({ codes, words }: AccountRefusal, { code, enhanced, text }: Reply): boolean =>
  code !== null && (codes.includes(enhanced ?? '') || words.some((each) => text.includes(each)))

/** @param refusal how the relay refuses our account; null if it is no known service */
export function classifyFailure(failure: SmtpFailure, refusal: AccountRefusal | null): FailureClass {
  const { stage, reply, errorCode, retryAfterMs = null } = failure
  const { code, text } = reply
  const refusesAccount = refusal !== null && matches(refusal, reply)
  const refused = code !== null && code >= 500 && code <= 599 && code !== 503
  const scope = refusesAccount ? 'relay' : blame({ ...failure, isRefused: refused })
  const tlsOrLogin = code === null && (errorCode === 'ETLS' || errorCode === 'EAUTH' || /certificate/i.test(text))
  return {
    permanent: refused && scope !== 'relay',
    scope,
    lasting: scope === 'relay' && (refused || tlsOrLogin || refusesAccount),
    slowDown: refused || scope === 'message' ? null : readSlowDown(reply),
    retryAfterMs,
    ambiguous: code === null && stage === 'handed-over',
  }
}
