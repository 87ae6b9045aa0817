/**
 * Whose failure a reply is. Every relay has its own words for a used-up quota, a suspended account or a
 * sender that is not verified, so no list of them is complete. In this order:
 *
 * 1. Connecting or the login fails, or EHLO is refused: the relay's.
 * 2. No reply to the message: this email's alone, since the relay may have taken it.
 * 3. The recipient is on a list of the relay, or greylisted: the recipient's.
 * 4. The reply answers MAIL, names the sender, or has a code for senders: unclear.
 * 5. Words or codes that only a recipient's own mailbox has: the recipient's.
 * 6. Words about a sender, an account, a limit or a reputation: unclear.
 * 7. A cause of a missing or full mailbox; or, refused for good and without words of a policy, the
 *    recipient's address, or its domain with words of a missing domain: the recipient's.
 * 8. All else is unclear: another relay may take the email, and one relay is believed only if it takes other
 *    mail.
 */

import { type EmailAddress, readDomain } from '../request/email-address.ts'
import { causeOf, either, missingMailbox, withoutAddresses } from './failure-cause.ts'
import type { FailureClass, Reply, Stage } from './reply.ts'

// The relay refuses our credentials, or our right to use it.
const refusesClient = new Set([530, 534, 535, 538])

/** By these words a relay repeats the reply of a receiver, or of a check of SPF. */
const quotes = /\bsaid\b|in reply to|\bcall(?:back|out|ed)\b|\bverif|\bresponse\b|\bSPF\b/i

/** Whether a reply is about EHLO: the word by itself, not in a domain (helo.com), nor quoted. */
export const namesGreeting = (text: string): boolean =>
  /(?<![\w.@-])(?:EHLO|HELO)(?![.-]\w|[\w=])/i.test(text) && !quotes.test(text)

/** Words about the sender, the account or its limits. They may stand beside the recipient's address. */
const aboutAccount = either(
  /\bsend(?:er|ers|ing)\b|\bsend limit|\bsubmission|\brelay|\brcpthosts\b|\boutgoing|\boutbound|\boutmail|\bmail ?from\b|\bfrom:? (?:address|header|domain)/,
  /\bdaily|\bhourly|\bmonthly|\bper (?:second|minute|hour|day|month)\b|\bthis (?:hour|day|month)\b|\bthrottl|\brate\b|\btoo (?:many|much|fast)\b/,
  /\byour (?:ip|account|domain|plan|subscription|organi[sz]ation|credentials?|access|server|host|mailbox|e-?mail account)\b/,
  /\bauthenticat|\bauthori[sz]|\bpermi(?:t|ssion)|\bnot verified\b|\bunverified (?:sender|domain|account)|\bsandbox|\btrial\b|\bcredits?\b|\bbilling|\bpayment/,
  /\bspam\b|\bspf\b|\bdkim\b|\bdmarc\b|\breputation|\bblock ?list|\bblack ?list|\bblocked\b|\bip address/,
  /\bconfiguration set|\btemplate|\bcampaign|\bapi\b|\bsmtp user|\bfor customer\b/,
)

/** Whether a reply speaks of our account, of a sender or of a limit. */
export const isAboutAccount = ({ text }: Reply): boolean => aboutAccount.test(wordsOf(text))

/** Policies and troubles of a relay at RCPT, where Postfix repeats the recipient's address. */
const aboutPolicy =
  /\bquota|\blimit|\bexceed|\bsuspended|\blocked|\bdisabled|\bpolicy|\bsmtp auth|\blookup|\bconfiguration|\bservice (?:is )?(?:currently |temporarily )?(?:not |un)available|\bstorage/

const refusesRecipient =
  /\brecipient(?: address)? (?:rejected|refused|denied)|\brecipients? (?:is not|isn['’]t|are not|aren['’]t) valid\b|\binvalid [`'"]?to\b|\baddress rejected|\bunroute?able\b|\bno valid recipients|\bnull ?mx\b/

/** The domain gets no mail; it may be that of the sender. */
const noDomain =
  /\bno such (?:domain|host)|\b(?:domain|host)(?: name)? (?:is )?(?:not found|unknown|invalid)|\b(?:domain|host)\b.{0,100} does ?n[o'’]t exist|\bno mx\b/

/** By its code, a reply is about the recipient's own mailbox, whatever else it says. */
const ofMailbox = /^[45]\.2\.[12]$/
const aboutSending = /\bsubmission|\bsending|\bsender\b|\bdaily|\bhourly|\bmonthly|\brelay|\bcustomer|\bpayment/

/** Whom a reply names: the recipient by the address, or by the domain alone, or the sender. */
export type Named = 'recipient' | 'recipient_domain' | 'sender' | null

/** @param senders the addresses in From and in the envelope */
export function findNamed(text: string, to: EmailAddress, senders: readonly EmailAddress[]): Named {
  const lower = text.toLowerCase()
  const has = (part: string) => lower.includes(part.toLowerCase())
  // An operator may send a test to the sender itself.
  if (senders.some(has)) return 'sender'
  if (has(to)) return 'recipient'
  if (has(readDomain(to))) return 'recipient_domain'
  return senders.some((sender) => has(readDomain(sender))) ? 'sender' : null
}

type Replied = {
  readonly stage: Stage
  readonly reply: Reply
  readonly named?: Named
  /** Whether the email is refused for good. */
  readonly isRefused: boolean
}

/** Qmail writes its code at the end: `(#5.1.1)`. */
const codeAtEnd = /\(#([45]\.\d\.\d{1,3})\)/

/** Whether a reply is about the recipient, so that no other relay could deliver the email. */
export function isAboutRecipient({ stage, reply, named = null, isRefused }: Replied): boolean {
  const { code, text } = reply
  if (code === null || stage === 'connect' || stage === 'sender') return false
  const enhanced = reply.enhanced ?? codeAtEnd.exec(text)?.[1] ?? null
  const cause = causeOf({ ...reply, enhanced })
  const words = wordsOf(text)
  if (cause === 'relay_suppressed' || isGreylisting(words)) return true
  if (named === 'sender' || /^[45]\.1\.[78]$/.test(enhanced ?? '')) return false
  if (missingMailbox.test(words)) return true
  if (ofMailbox.test(enhanced ?? '') && !aboutSending.test(words)) return true
  if (aboutAccount.test(words)) return false
  if (cause === 'no_mailbox') return true
  if (cause === 'mailbox_full')
    return (
      code === 552 || /^[45]\.2\.2$/.test(enhanced ?? '') || /mailbox|inbox|storage|recipient|user|full/.test(words)
    )
  if (!isRefused || aboutPolicy.test(words)) return false
  if (named === 'recipient' || refusesRecipient.test(words)) return true
  return named === 'recipient_domain' && noDomain.test(words)
}

/** In small letters, without addresses. Postfix's "relay recipient table" is not about relaying. */
const wordsOf = (text: string): string => withoutAddresses(text.toLowerCase()).replace('relay recipient table', '')

/** A receiver wants to see the same email again, after a while. */
const isGreylisting = (words: string): boolean =>
  /\bgr[ae]y[- ]?list|\bfirst contact|\bfirst[- ]time|\btriplet|\btry again in \d/.test(words)

/** Account refusals of known services aside. */
export function blame(replied: Replied): FailureClass['scope'] {
  const { stage, reply } = replied
  const { code, text } = reply
  // Postfix reports a wrong EHLO only at RCPT. After DATA, a receiver may be quoted.
  const refusesGreeting = stage !== 'handed-over' && code !== null && namesGreeting(text)
  if (stage === 'connect' || (code !== null && refusesClient.has(code)) || refusesGreeting) return 'relay'
  // Without a reply to the message, the relay may have taken it.
  const isOfEmail = (code === null && stage === 'handed-over') || isAboutRecipient(replied)
  return isOfEmail ? 'message' : 'unclear'
}

const slowCodes = /^4\.7\.|^4\.5\.3$|^4\.3\.2$/
const rateWords =
  /\brates?\b|\brate-|\bthrottl|\bper (?:second|minute|hour|day)\b|\btoo (?:many|much|fast|frequent)\b|\bfrequency\b|\bquota\b|\blimits?\b|\bexceeded\b|\btry(?: \w+)? later\b|\bretry in\b|\bslow down\b|\bbusy\b|\boverload/
const connectionWords =
  /\bconcurren|\b(?:too many|limit|maximum|max)\b.{0,40}\b(?:connections?|sessions?)\b|\b(?:connections?|sessions?)\b.{0,40}\b(?:limit|exceed|too many)/
/** Replies about one email or one session, about a sender, or about the relay's own trouble. */
const otherTrouble =
  /\bsize\b|\bspam|\btime ?out|\btimed out|\btls\b|\bspf\b|\bdkim\b|\bdmarc\b|\bhost ?name|\bdenied\b|\bin this (?:connection|session)|\bon this (?:connection|session)|\bcallout|\b(?:could not|unable to|cannot) connect|\bconnection (?:refused|reset)|\blocal problem/

/** Reads whether a transient reply asks for fewer connections, or for fewer emails a second. */
export function readSlowDown({ code, enhanced, text }: Reply): FailureClass['slowDown'] {
  if (code === null || /^4\.4\./.test(enhanced ?? '')) return null
  const words = wordsOf(text)
  if (isGreylisting(words) || otherTrouble.test(words)) return null
  if (/\brate limit|\brate\b.{0,20}\bexceed/.test(words)) return 'rate'
  if (connectionWords.test(words)) return 'connections'
  if (rateWords.test(words)) return 'rate'
  return code === 421 || code === 432 || slowCodes.test(enhanced ?? '') ? 'connections' : null
}
