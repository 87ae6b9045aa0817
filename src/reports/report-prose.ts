/**
 * Reports written for people, as qmail and old Exim send them. Sender and words distinguish them from mail of
 * people and from vacation replies. No such report proves anything about a mailbox.
 */
import { listAddresses } from '../domain/redaction/redact.ts'
import { type Fields, readLines } from './report-lines.ts'
import { judgeReply, type Row, readSaid } from './report-rows.ts'

/** Characters of prose that are read, and lines of a quoted reply. */
const proseMax = 4000
const paragraphMax = 2

const mailSystem =
  /mailer-?daemon|post_?master|mail (?:delivery|system|administrator)|deliver|returned mail|fail|bounce|error/
const failure =
  /fail|error|undeliver|not (?:be )?(?:deliver|reach)|unable to|did not reach|reject|invalid|unknown|no such|exceed|is full|expired/
const warning = /warning message only|will (?:be retried|keep trying|continue|try again)|delayed|no action is required/
const mailSystemAddress = /mailer-?daemon|post_?master/
/** Fields with which the returned email begins: its words are not the report's. */
const returned = /^(?:received|return-path|message-id|dkim-signature|mime-version):/i
const autoReply = /^(?:auto(?:matic)?[ -]?repl|out of (?:the )?office)/

/**
 * One row, without addresses, or none if the mail is no report.
 *
 * @param text the mail, without the line breaks of quoted-printable
 * @param addresses those in the fields of the mail
 */
export function readProse(header: Fields, text: string, addresses: readonly string[]): Row[] {
  const subject = inLowerCase(header, 'subject')
  const lines = readBody(text)
  const body = lines.join(' ').toLowerCase()
  const isReport =
    header.has('x-failed-recipients') || (!isAutoReply(header) && isFromMailSystem(header) && failure.test(body))
  if (!isReport) return []
  const quoted = [quotesReply, saysFailure].map((test) => lines.findIndex(test)).find((at) => at >= 0) ?? 0
  const isWarning = warning.test(body) || /\bwarning\b|\bdelay/.test(subject)
  const addressesOfAll = [...addresses, ...listAddresses(lines.join(' '))]
  const judged = judgeReply(readParagraph(lines, quoted), { status: null, addresses: addressesOfAll })
  const action = isWarning ? 'delayed' : 'failed'
  return [{ finalRecipient: null, originalRecipient: null, action, status: null, ...judged }]
}

/** Where the fields of a report begin. */
const fields = /^(?:reporting-mta|final-recipient|original-envelope-id):|^content-type: *message\//i

/** The reply that the text in front of the fields quotes; null if it quotes none. */
export function findQuotedReply(text: string): string | null {
  const lines = readBody(text)
  const end = lines.findIndex((line) => fields.test(line))
  const prose = end < 0 ? lines : lines.slice(0, end)
  const at = prose.findIndex((line) => readSaid(line).code !== null)
  return at < 0 ? null : readParagraph(prose, at)
}

const inLowerCase = (header: Fields, name: string): string => (header.get(name) ?? '').toLowerCase()

/** Vacation replies may have a null sender too; but some mail systems call their reports replies. */
const isAutoReply = (header: Fields): boolean =>
  (inLowerCase(header, 'auto-submitted').startsWith('auto-replied') ||
    autoReply.test(inLowerCase(header, 'subject'))) &&
  !mailSystemAddress.test(inLowerCase(header, 'from'))

/**
 * The server that delivers a mail writes the envelope's sender as Return-Path (RFC 5321 §4.4). That of a
 * report is empty (§4.5.5).
 */
function isFromMailSystem(header: Fields): boolean {
  const sender = header.get('return-path')
  const named = ['return-path', 'from', 'subject'].map((name) => inLowerCase(header, name))
  return sender === '<>' || sender === '' || mailSystem.test(named.join(' '))
}

const saysFailure = (line: string): boolean => failure.test(line.toLowerCase())

function quotesReply(line: string): boolean {
  const { code, enhanced } = readSaid(line)
  return code !== null || enhanced !== null
}

/** A line and those that continue it. */
function readParagraph(lines: readonly string[], from: number): string {
  const paragraph = lines.slice(from, from + paragraphMax)
  const end = paragraph.indexOf('')
  return paragraph.slice(0, end < 0 ? undefined : end).join(' ')
}

/** The beginning of what follows the header, up to the returned email. */
function readBody(text: string): string[] {
  const lines: string[] = []
  let [isBody, size] = [false, 0]
  for (const line of readLines(text)) {
    if (isBody && returned.test(line)) break
    if (isBody) lines.push(line.trim())
    if (isBody) size += line.length + 1
    if (line === '') isBody = true
    if (size >= proseMax) break
  }
  return lines
}
