/**
 * Reports written for people, as qmail and old Exim send them. Sender, subject and words distinguish them
 * from mail of people and from vacation replies. No such report proves anything about a mailbox.
 */
import { causeOfWords, either } from '../domain/delivery/failure-cause.ts'
import { listAddresses } from '../domain/redaction/redact.ts'
import { type Fields, readLines } from './report-lines.ts'
import { judgeReply, type Row, readSaid } from './report-rows.ts'

/** Characters of prose that are read, and lines of a quoted reply. */
const proseMax = 4000
const paragraphMax = 2

/** In the address or the name of a sender. */
const mailSystem =
  /mailer-?daemon|post_?master|mail (?:deliver|system|administrator)|(?:delivery|bounce) (?:sub)?system|returned mail/
/** Subjects of reports, and no others. */
const undelivered = either(
  /undeliver|non[- ]?deliver|not (?:be )?(?:delivered|sent)|could ?n[o']t (?:be )?(?:deliver|send)|cannot send|returned (?:mail|to sender|e-?mail)/,
  /return(?:ed|ing) message|deliver\w* (?:has )?(?:fail|status|problem|error|report|delay|notif)|fail\w* (?:deliver|notic|notif)|mail (?:system )?(?:error|fail)/,
  /bounce|message (?:status|delayed|blocked)|unzustellbar|nicht (?:zugestellt|zustellbar)|non remis|non distribu|mancata consegna|no (?:se )?(?:ha )?(?:podido|pudo) entreg|no entregad/,
  /n[aã]o (?:foi )?entreg|onbestelbaar|nie(?:do|\s)r[eę]cz|не (?:может быть )?доставлен|недоставлен|エラー|配信(?:不能|できません)|送信でき|届け|退信|无法投递|無法投遞|반송|전송 ?실패/,
)
const failure =
  /fail|error|undeliver|not (?:be )?(?:deliver|reach)|unable to|did not reach|reject|invalid|unknown|no such|exceed|is full|expired|disabled|でき(?:ません|ない)|存在し|一杯|いっぱい/
const warning =
  /warning message only|will (?:be retried|keep trying|continue|try again|retry)|delayed|no action is required|still trying|not yet been delivered/
const mailSystemAddress = /mailer-?daemon|post_?master/
/** Fields with which the returned email begins: its words are not the report's. */
const returned =
  /^(?:received|return-path|message-id|dkim-signature|mime-version|delivered-to|authentication-results|arc-[\w-]{1,30}):/i
const autoReply =
  /^(?:auto(?:matic|mated)?[ -]?(?:repl|respon|answer|antwort)|out of (?:the )?office|(?:on |am )?(?:vacation|holiday|annual leave)|abwesen|automatische antwort|r[eé]ponse automatique|absen|respuesta autom|fuera de|resposta autom|risposta autom|afwezig|自動返信|自动回复|不在)/
/** People answer a report, or forward it. */
const answer = /^(?:re|aw|antw|sv|vs|fwd?|wg|tr|rv|res|enc|odp) ?:/

/**
 * One row, without addresses, or none if the mail is no report.
 *
 * @param text the mail, decoded
 * @param addresses those in the fields of the mail
 */
export function readProse(header: Fields, text: string, addresses: readonly string[]): Row[] {
  const subject = inLowerCase(header, 'subject')
  const lines = readBody(text)
  const body = lines.join(' ').toLowerCase()
  if (!isReport(header, body)) return []
  const isWarning = warning.test(body) || /\bwarning\b|\bdelay/.test(subject)
  const addressesOfAll = [...addresses, ...listAddresses(lines.join(' '))]
  const judged = judgeReply(findReply(lines) ?? readParagraph(lines, Math.max(lines.findIndex(saysFailure), 0)), {
    status: null,
    addresses: addressesOfAll,
  })
  const action = isWarning ? 'delayed' : 'failed'
  return [{ finalRecipient: null, originalRecipient: null, action, status: null, ...judged }]
}

function isReport(header: Fields, body: string): boolean {
  if (header.has('x-failed-recipients')) return true
  if (isAutoReply(header)) return false
  const subject = inLowerCase(header, 'subject')
  const saysSo = failure.test(body) || warning.test(body)
  if (isFromMailSystem(header)) return saysSo || undelivered.test(subject)
  // Vacation replies of people have a null sender too, and no word of a delivery.
  if (hasNullSender(header) && (undelivered.test(body) || readSaid(body).code !== null)) return true
  return saysSo && undelivered.test(subject) && !answer.test(subject)
}

/** The lines that quote a reply; else those that name a cause. */
function findReply(lines: readonly string[]): string | null {
  const namesCause = (text: string) => causeOfWords(text) !== 'unknown'
  const tests = [quotesReply, namesCause, (_line: string, n: number) => namesCause(readParagraph(lines, n))]
  const at = tests.map((test) => lines.findIndex(test)).find((found) => found >= 0)
  return at === undefined ? null : readParagraph(lines, at)
}

/** Where the fields of a report begin. */
const fields = /^(?:reporting-mta|final-recipient|original-envelope-id):|^content-type: *message\//i

/** The reply in the text in front of the fields; null if it has none. */
export function findQuotedReply(text: string): string | null {
  const lines = readBody(text)
  const end = lines.findIndex((line) => fields.test(line))
  return findReply(end < 0 ? lines : lines.slice(0, end))
}

const inLowerCase = (header: Fields, name: string): string => (header.get(name) ?? '').toLowerCase()

/** Vacation replies may have a null sender too; but some mail systems call their reports replies. */
const isAutoReply = (header: Fields): boolean =>
  (inLowerCase(header, 'auto-submitted').startsWith('auto-replied') ||
    ['x-autoreply', 'x-autorespond'].some((name) => header.has(name)) ||
    /auto_?reply/.test(inLowerCase(header, 'precedence')) ||
    autoReply.test(inLowerCase(header, 'subject'))) &&
  !mailSystemAddress.test(inLowerCase(header, 'from'))

const isFromMailSystem = (header: Fields): boolean =>
  mailSystem.test(['return-path', 'from'].map((name) => inLowerCase(header, name)).join(' '))

/**
 * The server that delivers a mail writes the envelope's sender as Return-Path (RFC 5321 §4.4). That of a
 * report is empty (§4.5.5).
 */
const hasNullSender = (header: Fields): boolean => ['<>', ''].includes(header.get('return-path') ?? 'none')

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
