/**
 * All failure policy in one place. The basic code decides the class: 4xx, 503 and every network or
 * TLS fault are transient, other 5xx permanent; what cannot be classified is transient. The scope
 * says whose fault it is: the message's, or the relay's as a whole. The enhanced code tells the
 * cause. (RFC 5321 §4.2.1, RFC 3463.)
 */

/** How far an SMTP conversation had come when it ended. */
export type SmtpStage = 'connect' | 'envelope' | 'data' | 'final-dot'

/** What ended it: a reply (multi-line as one text), or a fault of network or TLS without one. */
export type SmtpFailure = { readonly stage: SmtpStage; readonly reply: string | null; readonly fault: string }

export type SmtpVerdict = {
  readonly class: 'transient' | 'permanent'
  readonly scope: 'message' | 'relay'
  /** The relay asks for less: fewer connections for a while. */
  readonly slowDown: boolean
  /** The relay may have taken the message: it was lost after the final dot. */
  readonly ambiguous: boolean
}

const replyShape = /^(\d{3})(?:[ -]|$)(?:(\d\.\d{1,3}\.\d{1,3})(?:[ ]|$))?/

/** RFC 5321 reply code and RFC 3463 enhanced code, where the text begins with them. */
export function parseReply(text: string): { code: number | null; enhanced: string | null } {
  const match = replyShape.exec(text)
  return { code: match?.[1] === undefined ? null : Number(match[1]), enhanced: match?.[2] ?? null }
}

// Our credentials or our right to use the relay: every email would meet the same refusal.
const refusesUs = new Set([530, 534, 535, 538])

export function classifyFailure(failure: SmtpFailure): SmtpVerdict {
  const { code, enhanced } = parseReply(failure.reply ?? '')
  const unanswered = code === null
  const ofRelay = failure.stage === 'connect' || (code !== null && refusesUs.has(code))
  const permanent = code !== null && code >= 500 && code <= 599 && code !== 503
  return {
    class: permanent && !ofRelay ? 'permanent' : 'transient',
    scope: ofRelay ? 'relay' : 'message',
    slowDown:
      code === 421 || (!permanent && enhanced !== null && (/^4\.7\./.test(enhanced) || enhanced === '4.5.3')),
    ambiguous: unanswered && failure.stage === 'final-dot',
  }
}

/** A reply fit for records and logs: one line, bounded, without addresses, links or tokens. */
export const redactReply = (text: string): string =>
  text
    .slice(0, 2000) // a relay may say up to 1 MiB, and what follows takes its time
    .replace(/\s+/g, ' ')
    .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, '<link>')
    .replace(/token=\S+/gi, '<token>')
    .replace(/[^\s<>"'(),;:]+@[^\s<>"'(),;]+/g, '<address>')
    .slice(0, 300)
