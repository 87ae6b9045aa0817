/**
 * Finds what could be a one-time code, in a report about an email of which nothing is kept: four to twelve
 * digits, or letters and digits, in capitals where there are letters alone. Codes of replies are shorter, or
 * have full stops; dates, IPv6 addresses, names of servers and words of replies are no codes.
 */
import { isCapitalWord } from './capitals.ts'
import { findDigits, isAddress, isReplyCode } from './digits.ts'
import { decodeText, toSpan } from './letters.ts'
import { isServerName } from './shapes.ts'
import { findMatches, type Span } from './spans.ts'

const codeMin = 4
const codeMax = 12

/** @param status the codes in front of the line, which the first half of a code could be */
export function findNumbers(line: string, status: string): Span[] {
  const plain = findPlain(line)
  const half = /^\d{3}[ -]$/.test(status) ? /^\d{3}(?![\p{L}\p{N}.:])/u.exec(line) : null
  if (half !== null && !isReplyCode(half[0])) plain.push({ from: 0, to: 3, mark: '<number>' })
  return [...plain, ...findDecoded(line, plain)]
}

/** Reads escapes, and no tags. */
function findDecoded(line: string, plain: readonly Span[]): Span[] {
  const decoded = decodeText(line, { skipsTags: true })
  if (decoded.text === line) return []
  return findPlain(decoded.text)
    .map(({ from, to, mark }) => toSpan(decoded, from, to - from, mark))
    .filter(({ from, to }) => {
      const [name = ''] = /^[a-z_]+=/.exec(line.slice(from, to)) ?? [] // `id=72…`, of which `=72` is no escape
      return !plain.some((span) => span.from <= from + name.length && to <= span.to)
    })
}

const findPlain = (line: string): Span[] => [
  ...findDigits(line),
  ...findNamedCodes(line),
  ...findSpacedCodes(line),
  ...findWords(line),
]

const date = /^(?:19|20)\d\d-[01]\d-[0-3]\d(?:T[\d:.]{5,15}(?:Z|[+-]\d{2}:?\d{2})?)?$/

function findWords(line: string): Span[] {
  const spans: Span[] = []
  for (const { 0: run, index } of line.matchAll(/[\p{L}\p{N}_.:-]+/gu)) {
    const text = run.replace(/^[.:-]+|[.:-]+$/g, '')
    if (date.test(text) || isAddress(text) || isNumberOfStandard(line.slice(Math.max(0, index - 13), index), text))
      continue
    const isHost = isHostName(text)
    for (const { 0: word, index: within } of run.matchAll(/[\p{L}\p{N}-]+/gu)) {
      const [from, to] = [index + within, index + within + word.length]
      const found = isHost ? /^\d{4,}$/.test(word) : couldBeCode(word, (line[from - 1] ?? '') + (line[to] ?? ''))
      if (found) spans.push({ from, to, mark: '<number>' })
    }
  }
  return spans
}

const months = `Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|
Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?`.replaceAll('\n', '')
const beforeYear = new RegExp(`(?:^|[^\\p{L}])(?:${months})\\.?,? $`, 'u')
const beforeStandard = /(?:^|[^\p{L}])RFC[ -]?$/iu

/** `RFC 5321`; the year of `26 Nov 2024`. */
function isNumberOfStandard(near: string, text: string): boolean {
  return (
    (beforeStandard.test(near) && /^\d{3,4}(?![\p{L}\p{N}])/u.test(text)) ||
    (beforeYear.test(near) && /^(?:19|20)\d\d(?![\p{L}\p{N}])/u.test(text))
  )
}

const topLevels = new Set(
  `com net org edu gov mil int info biz name example test invalid local localhost lan internal`.split(' '),
)
/** Words of two letters after a full stop that lacks its space, as in `Use 246813.IF you did not`. */
const smallWords = new Set(`an as at be by do go he if in is it me my no of on or so to up us we`.split(' '))
const isTopLevel = (label: string): boolean => topLevels.has(label) || (label.length === 2 && !smallWords.has(label))

function isHostName(text: string): boolean {
  const labels = text.split('.')
  if (!isServerName(text)) return false
  return labels.length > 2 || !couldBeCode(labels[0] ?? '', '') || isTopLevel(labels[1]?.toLowerCase() ?? '')
}

/** `smtp2`, `IPv6`, `8bit`, `10MB`, `RFC5321`, `UTF-8`. */
const numbered = new RegExp(
  `^(?:(?:${[
    'aes|base|exim|gmail|host|imap|ipv|mail|md|mta|mx|mxin|mxout|node|ns|office|pop|relay|rfc-?|rsa|server|sha',
    'smtp|sslv?|tlsv?|utf-?|web',
  ].join('|')})\\d{1,4}|\\d{1,3}(?:bit|bitmime|[kmg]i?b|ms|s|m|h|d|min|st|nd|rd|th)|iso-8859-\\d{1,2})$`,
  'i',
)
/** The standards of mail, as in `5322.From`. */
const standards = new Set(['5321', '5322', '2822', '3464'])

/** The names that receivers give to their reasons: of letters that are known for it, or in brackets. */
const reason = /^[A-Z]{1,4}\d{1,4}$/
const knownReason = /^(?:AS|AUP|BL|CS|DY|E|HU|IB|IP|IPB|OU|PH|PO|PR|PT|RL|RLY|RP|S|SC|TS|TSS)\d+$/
/** A reason of Meta: `RCP-P2`. */
const statement = /^(?:CON|DNS|INT|MSG|POL|RCP)-[A-Z]\d$/
const isReason = (letters: string, around: string): boolean =>
  letters.length < 6 && reason.test(letters) && (knownReason.test(letters) || /^[[(][\])]$/.test(around))

/** @param around the characters beside the word */
function couldBeCode(word: string, around: string): boolean {
  if (standards.has(word) || numbered.test(word) || statement.test(word)) return false
  const [, code = '', rest = ''] = /^(\d{3})-(.*)$/.exec(word) ?? []
  const letters = (isReplyCode(code) ? rest : word).replaceAll('-', '')
  if (isReason(letters, around)) return false
  if (/\d{4}/.test(word)) return true
  if (letters.length < codeMin || letters.length > codeMax) return false
  if (/\d/.test(letters)) return /\p{L}/u.test(letters)
  const isQuoted = /^["'`*“‘«][^\p{L}]$/u.test(around)
  return letters.length >= (isQuoted ? 4 : 5) && isNoWord(word, letters)
}

/** Letters in capitals, in both cases without an order, or without vowels, that make up no word. */
function isNoWord(word: string, letters: string): boolean {
  if (!/^[A-Za-z]+$/.test(letters) || isCapitalWord(word.toUpperCase())) return false
  if (/^[A-Z]+$/.test(letters)) return true
  if (/^[A-Z]?[a-z]+$/.test(letters)) return letters.length > 5 && !/[aeiouy]/i.test(letters)
  const parts = letters.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []
  return !/^[A-Z]+[ds]$/.test(letters) && letters.length < 3 * parts.length
}

const codeNames = /(?<![\p{L}\p{N}])(?:code|otp|pin|passcode|password|token)(?:[:=]| is)?[:=]? ?["'<([]?/giu

/** The word that follows `code`, in capitals or with a digit. */
function findNamedCodes(line: string): Span[] {
  return Array.from(line.matchAll(codeNames), ({ 0: name, index }) => {
    const from = index + name.length
    const [word = ''] = /^[\p{L}\p{N}-]*/u.exec(line.slice(from, from + 40)) ?? []
    const isCode =
      word.length >= codeMin &&
      word.length <= codeMax + 3 &&
      ((/^[A-Z-]+$/.test(word) && !isCapitalWord(word)) || /\d/.test(word))
    return { from, to: from + word.length, mark: '<code>' as const, isCode }
  }).filter(({ isCode }) => isCode)
}

const singles = /(?<![\p{L}\p{N}])(?:[A-Z\d] ){3,11}[A-Z\d](?![\p{L}\p{N}.:])/giu
const pairs = /(?<![\p{L}\p{N}._:-])[A-Z\d]{2,4} (?=([A-Z\d]{2,4})(?![\p{L}\p{N}_:-]|\.[\p{L}\p{N}]))/gu

/** `K X R T Q 7` and `KXR TQ7`. */
function findSpacedCodes(line: string): Span[] {
  const found = findMatches(line, singles, '<number>')
  for (const { 0: head, 1: half = '', index } of line.matchAll(pairs)) {
    const halves = [head.trimEnd(), half]
    const isCode =
      halves.some((part) => /\d/.test(part) && /[A-Z]/.test(part)) &&
      !halves.some((part) => isReplyCode(part) || isCapitalWord(part) || numbered.test(part) || isReason(part, ''))
    if (isCode) found.push({ from: index, to: index + head.length + half.length, mark: '<number>' })
  }
  return found
}
