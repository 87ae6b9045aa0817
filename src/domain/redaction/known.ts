/**
 * Finds what is known of an email in a line: its recipient, names, link, token and code, whole or in part and
 * in any spelling, and the credentials that the other side was sent.
 */
import type { EmailContent } from '../request/email-content.ts'
import { findEncoded, type Value } from './encodings.ts'
import { findAll, isJoined, isWhole, type Letters, lettersOf, readLetters, toSpan } from './letters.ts'
import type { Mark, Span } from './spans.ts'

/** The line, read in each way in which a value can be written: once if it has no escapes and no tags. */
export type Readings = {
  readonly lineCode: string | null
  readonly plain: Letters
  readonly forWords: readonly Letters[]
  /** No digits are skipped in one of them. */
  readonly forCodes: readonly Letters[]
}

/** @param lineCode the code with which each line of the reply begins */
export function readLine(line: string, lineCode: string | null): Readings {
  const plain = readLetters(line, { lineCode })
  const decoded = /[%=&\\]/.test(line) ? [readLetters(line, { lineCode, decodes: true })] : []
  const isSame = !/[%=&<\\]/.test(line) && (lineCode === null || !line.includes(` ${lineCode}`))
  const withoutTags = isSame ? [] : [readLetters(line, { decodes: true, skipsTags: true })]
  const forWords = [plain, ...decoded]
  return { lineCode, plain, forWords, forCodes: [...forWords, ...withoutTags] }
}

/** Shorter words occur in ordinary sentences, so they stay; of another script, two letters are a word. */
const isFindable = (word: string): boolean =>
  word.length > 2 || (word.length === 2 && !/^[\p{Script=Latin}\p{N}]+$/u.test(word))
/** Their words have no spaces between, or endings that are written to them. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u
/** A shorter value is not looked for across a space: two words of a sentence could be it. */
const spacedMin = 5
/** A line that shares so many letters in a row with a secret has quoted it, perhaps in part. */
const sharedMin = 8
/** So much of a local part is found at the end of a line, where it may be cut. */
const cutMin = 4

/**
 * Ordinary words of replies. A local part that is one is hidden only as part of a whole address; a code that
 * is one stays, because the reply's cause is read from them.
 */
const ordinaryWords = new Set(
  `account address admin domain host info mail mailbox message policy postmaster recipient relay root sender
server service spam support test user blocked denied exist exists expired exceeded found full inbox invalid
limit many over quota rate refused rejected storage such timed unavailable unknown valid virus`.split(/\s/),
)
/** Three digits could be the code of the reply. */
const isOrdinary = (word: string): boolean => /^\d{0,3}$/.test(word) || ordinaryWords.has(word)

export function findEmail(readings: Readings, line: string, email: EmailContent): Span[] {
  const names = [email.organisationName, email.inviterName].filter((name) => name !== undefined)
  const token = readToken(email.url)
  const tokens = findWord(readings, line, { word: lettersOf(token), mark: '<token>' })
  return [
    ...findAddress(readings, line, email.to),
    ...names.flatMap((name) =>
      findWord(readings, line, { word: lettersOf(name), mark: '<name>', isSpaced: name.includes(' ') }),
    ),
    ...names.flatMap((name) => findShortName(line, name)),
    ...tokens,
    ...findLink(readings, line, email.url, tokens),
    ...(email.code === undefined ? [] : findCode(readings, email.code)),
    ...findEncoded(line, readings.lineCode, listValues(email, token)),
  ]
}

/** The values that are looked for in other encodings. */
const listValues = (email: EmailContent, token: string): Value[] => [
  { value: email.to.slice(0, email.to.lastIndexOf('@')), mark: '<address>' },
  { value: email.to, mark: '<address>' },
  { value: email.organisationName ?? '', mark: '<name>' },
  { value: email.inviterName ?? '', mark: '<name>' },
  { value: token, mark: '<token>' },
  { value: email.url, mark: '<link>' },
  { value: email.code ?? '', mark: '<code>' },
]

/** Words of two letters that begin sentences of replies. */
const smallWords = new Set(
  'ad am an as at be by do go he id if in ip is it me mx my no of ok on or so to up us we'.split(' '),
)

/** A name of two Latin letters, with a capital and alone: `Bo`. */
function findShortName(line: string, name: string): Span[] {
  const plain = name.normalize('NFKC').trim()
  if (!/^\p{Script=Latin}{2}$/u.test(plain) || smallWords.has(plain.toLowerCase())) return []
  const capital = plain.toUpperCase()
  const forms = new Set([capital, capital.slice(0, 1) + plain.toLowerCase().slice(1)])
  return [...forms].flatMap((form) =>
    findAll(line, form)
      .filter((at) => !/[\p{L}\p{N}]/u.test(`${line[at - 1] ?? ''}${line[at + form.length] ?? ''}`))
      .map((from): Span => ({ from, to: from + form.length, mark: '<name>' })),
  )
}

/** An address in its spellings, its local part, and this one without a tag. */
export function findAddress(readings: Readings, line: string, address: string): Span[] {
  const at = address.lastIndexOf('@')
  const local = lettersOf(address.slice(0, at))
  const untagged = lettersOf(address.split(/[+@]/, 1)[0] ?? '')
  const alone = [local, untagged].filter((word) => !isOrdinary(word))
  const cut = alone.flatMap((word) => findCut(readings.plain, line, word))
  if (!readings.forWords.some(({ text }) => text.includes(untagged))) return cut
  const labels = address
    .slice(at + 1)
    .split('.')
    .map(lettersOf)
  const domain = labels.join('')
  const whole = [domain, `at${domain}`, `at${labels.join('dot')}`].map((end) => local + end)
  const words = [...whole, domain + local, ...alone]
  return [...cut, ...words.flatMap((word) => findWord(readings, line, { word, mark: '<address>' }))]
}

type Wanted = {
  /** Letters and digits. */
  readonly word: string
  readonly mark: Mark
  /** Whether it is looked for across spaces though it is short. */
  readonly isSpaced?: boolean
}

function findWord(readings: Readings, line: string, { word, mark, isSpaced = false }: Wanted): Span[] {
  if (!isFindable(word)) return []
  const maySpan = isSpaced || word.length >= spacedMin
  return readings.forWords.flatMap((letters) =>
    findAll(letters.text, word)
      .filter((at) => unspaced.test(word) || isWhole(letters, at, word.length))
      .filter((at) => isJoined(letters, at, word.length, maySpan))
      .map((at) => withPadding(line, toSpan(letters, at, word.length, mark)))
      .filter((span) => isSpaced || !isSentence(line, span)),
  )
}

/** A token may end in `=`. */
function withPadding(line: string, { from, to, mark }: Span): Span {
  const [padding = ''] = mark === '<token>' ? (/^={0,2}/.exec(line.slice(to, to + 2)) ?? []) : []
  return { from, to: to + padding.length, mark }
}

/** `Mailbox Full` is no quotation of `mailboxfull@example.com`. */
function isSentence(line: string, { from, to }: Span): boolean {
  const words = line.slice(from, to).toLowerCase().split(' ')
  return words.length > 1 && words.every((word) => ordinaryWords.has(word))
}

/** The beginning of a word at the end of a line, where a sign beside it shows that it is no whole word. */
function findCut(letters: Letters, line: string, word: string): Span[] {
  const { text } = letters
  for (let length = Math.min(word.length, text.length); length >= cutMin; length--) {
    const at = text.length - length
    if (!text.endsWith(word.slice(0, length)) || !isWhole(letters, at, length)) continue
    const span = toSpan(letters, at, length, '<address>')
    const isSigned = /[^ ]/.test(line[span.from - 1] ?? ' ') || /^(?:\.\.|=)/.test(line.slice(span.to))
    if (isSigned && isJoined(letters, at, length, false)) return [span]
  }
  return []
}

const readToken = (url: string): string => {
  const begin = /[?&]token=/.exec(url)
  return begin === null ? '' : (url.slice(begin.index + begin[0].length).split('#', 1)[0] ?? '')
}

/**
 * The words in which a line shares letters with the link, in a row.
 * @param tokens where the whole token was found
 */
function findLink(readings: Readings, line: string, url: string, tokens: readonly Span[]): Span[] {
  if (readings.plain.text.length < sharedMin) return []
  const parts = secretParts(url)
  return readings.forWords.flatMap((letters) => {
    const spans: Span[] = []
    for (let at = 0; at + sharedMin <= letters.text.length; at++) {
      const shared = letters.text.slice(at, at + sharedMin)
      const part = parts.find((each) => each.includes(shared))
      if (part === undefined || !isJoined(letters, at, sharedMin, /\d/.test(part))) continue
      const span = toSpan(letters, at, sharedMin, '<link>')
      const isToken = tokens.some(({ from, to }) => from <= span.from && span.to <= to)
      if (!isToken) spans.push(wholeWords(line, span))
    }
    return spans
  })
}

function wholeWords(line: string, { from, to, mark }: Span): Span {
  const end = line.indexOf(' ', to)
  return { from: line.lastIndexOf(' ', from) + 1, to: end < 0 ? line.length : end, mark }
}

/**
 * The letters of the parts of the link's path and query, as they are and decoded. Its host is not secret.
 * Plain words in small letters, such as `authentication`, are not either, and diagnoses need them.
 */
function secretParts(url: string): string[] {
  const begin = url.indexOf('://')
  const path = url.indexOf('/', begin < 0 ? 0 : begin + 3)
  const text = path < 0 ? '' : url.slice(path)
  const parts = text.split(/[/?&=#:]/).filter((part) => part.length >= sharedMin && /[^a-z._-]/.test(part))
  return parts.flatMap((part) =>
    part.includes('%') ? [lettersOf(part), readLetters(part, { decodes: true }).text] : [lettersOf(part)],
  )
}

/**
 * A code in any case and however it is grouped. One with digits also within a word, where it is as easily
 * read; one of letters alone only as a word, and not if replies use that word.
 */
function findCode(readings: Readings, code: string): Span[] {
  if (ordinaryWords.has(code.toLowerCase())) return []
  const word = lettersOf(code)
  return readings.forCodes.flatMap((letters) =>
    findAll(letters.text, word)
      .filter((at) => /\d/.test(code) || isWhole(letters, at, word.length))
      .filter((at) => isJoined(letters, at, word.length, true))
      .map((at) => toSpan(letters, at, word.length, '<code>')),
  )
}

/** Credentials, also in form, base64 or hexadecimal encoding, and however they are broken into lines. */
export function findSecret(readings: Readings, line: string, secret: string): Span[] {
  const spellings = [secret, encodeURIComponent(secret), new URLSearchParams({ '': secret }).toString().slice(1)]
  const encoded = findEncoded(line, readings.lineCode, [{ value: secret, mark: '<secret>' }])
  const spelled = spellings.flatMap((spelling) => {
    const exact = findAll(line, spelling).map((from): Span => ({ from, to: from + spelling.length, mark: '<secret>' }))
    const word = lettersOf(spelling)
    return word.length < sharedMin ? exact : [...exact, ...findWord(readings, line, { word, mark: '<secret>' })]
  })
  return [...spelled, ...encoded]
}
