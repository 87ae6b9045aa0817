/**
 * The failure policy of SMTP. The reply code decides whether a failure is permanent: 5xx except 503
 * is; 4xx, 503 and every network or TLS fault are transient, and so is a reply that cannot be
 * classified. The stage and a few codes decide whose failure it is: the message's, or that of the
 * relay as a whole. (RFC 5321 §4.2.1, RFC 3463.)
 */

import type { EmailContent } from './email-content.ts'
import { type FailureClass, type Reply, redactReply, type Stage } from './reply.ts'

const replyShape = /^(\d{3})(?:[ -]|$)(?:(\d\.\d{1,3}\.\d{1,3})(?:[ ]|$))?/

/**
 * A relay's reply (multi-line as one text), with its RFC 5321 and RFC 3463 codes where it has them, and
 * without what the email that it answers holds.
 */
export function parseReply(raw: string, email: EmailContent | null = null): Reply {
  const match = replyShape.exec(raw)
  const code = match?.[1] === undefined ? null : Number(match[1])
  return { code, enhanced: match?.[2] ?? null, text: redactReply(raw, email) }
}

/** Why a submission failed. `errorCode` is the SMTP client's own code, such as ETLS or EAUTH. */
export type SmtpFailure = {
  readonly stage: Stage
  readonly reply: Reply
  readonly errorCode: string | null
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
    ambiguous: code === null && stage === 'handed-over',
  }
}
