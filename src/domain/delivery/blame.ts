/**
 * Whose failure a reply is. Every relay has its own words for a used-up quota, a suspended account or a
 * sender that is not verified, so no list of them is complete. A reply that names neither the recipient nor
 * the relay is `unclear`: another relay may take the email, and one relay is believed only if it takes other
 * mail.
 */
import { causeOf, withoutAddresses } from './failure-cause.ts'
import type { FailureClass, Reply, Stage } from './reply.ts'

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

/** Words about the sender, the account or its limits. They may stand beside the recipient's address. */
const aboutAccount = new RegExp(
  [
    /\bsend(?:er|ers|ing)\b|\bsubmission|\brelay|\brcpthosts\b|\boutgoing|\boutbound|\bmail ?from\b|\bfrom:? (?:address|header|domain)/,
    /\bdaily|\bhourly|\bmonthly|\bper (?:second|minute|hour|day|month)\b|\bthis (?:hour|day|month)\b|\bthrottl|\brate\b|\btoo (?:many|much|fast)\b/,
    /\byour (?:ip|account|domain|plan|subscription|organi[sz]ation|credentials?|access|server|host|mailbox|e-?mail account)\b/,
    /\bauthenticat|\bauthori[sz]|\bpermi(?:t|ssion)|\bnot verified\b|\bunverified (?:sender|domain|account)|\bsandbox|\btrial\b|\bcredits?\b|\bbilling|\bpayment/,
    /\bspam\b|\bspf\b|\bdkim\b|\bdmarc\b|\breputation|\bblock ?list|\bblack ?list|\bblocked\b|\bip address/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

/** The recipient, or its domain, gets no mail. */
const refusesRecipient =
  /\brecipient(?: address)? (?:rejected|refused|denied)|\brecipients? (?:is not|isn['’]t|are not|aren['’]t) valid\b|\binvalid [`'"]?to\b|\baddress rejected|\bunroute?able\b|\bno such (?:domain|host)|\b(?:domain|host)(?: name)? (?:is )?(?:not found|unknown|invalid)|\b(?:domain|host) does ?n[o']t exist/

/** By its code, a reply is about the recipient's own mailbox, whatever else it says. */
const ofMailbox = /^[45]\.2\.[12]$/

type Replied = { readonly stage: Stage; readonly reply: Reply; readonly namesRecipient?: boolean }

/** Whether a reply is about the recipient, so that no other relay could deliver the email. */
export function isAboutRecipient({ stage, reply, namesRecipient = false }: Replied): boolean {
  if (reply.code === null || stage === 'connect' || stage === 'sender') return false
  const cause = causeOf(reply)
  const words = withoutAddresses(reply.text.toLowerCase())
  if (cause === 'relay_suppressed' || isGreylisting(words)) return true
  if (ofMailbox.test(reply.enhanced ?? '') && !/\bsubmission|\bsending|\bsender\b|\bdaily/.test(words)) return true
  if (aboutAccount.test(words)) return false
  if (cause === 'no_mailbox' || namesRecipient || refusesRecipient.test(words)) return true
  return cause === 'mailbox_full' && /mailbox|inbox|storage|recipient|user|full/.test(words)
}

/** A receiver wants to see the same email again, after a while. */
const isGreylisting = (words: string): boolean => /\bgr[ae]y[- ]?list/.test(words)

/** @param refusal how the relay refuses our account; null if it is no known service */
export function blame(
  replied: Replied,
  refusal: AccountRefusal | null,
): { readonly scope: FailureClass['scope'] /** As an account refusal. */; readonly isKnown: boolean } {
  const { stage, reply } = replied
  const { code, text } = reply
  if (refusal !== null && matches(refusal, reply)) return { scope: 'relay', isKnown: true }
  // Postfix reports a wrong EHLO only at RCPT. After DATA, a receiver may be quoted.
  const refusesGreeting = stage !== 'handed-over' && code !== null && namesGreeting(text)
  if (stage === 'connect' || (code !== null && refusesClient.has(code)) || refusesGreeting)
    return { scope: 'relay', isKnown: false }
  // Without a reply to the message, the relay may have taken it.
  const isOfEmail = (code === null && stage === 'handed-over') || isAboutRecipient(replied)
  return { scope: isOfEmail ? 'message' : 'unclear', isKnown: false }
}

const slowCodes = /^4\.7\.|^4\.5\.3$|^4\.3\.2$/
const connectionWords = /\bconnections?\b|\bconcurren|\bsessions?\b/
const rateWords =
  /\brates?\b|\bthrottl|\bper (?:second|minute|hour|day)\b|\btoo (?:many|much|fast)\b|\bquota\b|\blimit\b|\blimits\b|\bexceeded\b|\btry(?: \w+)? later\b|\bslow down\b/

/** Reads whether a transient reply asks for fewer connections, or for fewer emails a second. */
export function readSlowDown({ code, enhanced, text }: Reply): FailureClass['slowDown'] {
  if (code === null) return null
  const words = withoutAddresses(text.toLowerCase())
  if (isGreylisting(words)) return null
  if (connectionWords.test(words)) return 'connections'
  if (rateWords.test(words)) return 'rate'
  return code === 421 || code === 432 || slowCodes.test(enhanced ?? '') ? 'connections' : null
}
