/**
 * Takes out of a relay's reply what records and logs must not hold: the recipient, names, link and code of
 * the email that it answers, also in part or without scheme and host, and everything that looks like an
 * address, a link or a token. A relay that means to leak them still can, in an encoded form: it has read the
 * message.
 */
import type { EmailContent } from './email-content.ts'

/** Shorter words occur in ordinary sentences, so they stay. */
const wordMin = 3
/**
 * Ordinary words of replies. A local part that is one is taken out only as part of a whole address; a code
 * that is one stays, because the reply's cause is read from them.
 */
const ordinaryWords = new Set(
  `account address admin domain host info mail mailbox message policy postmaster recipient relay root sender
server service spam support test user blocked denied exist exists expired exceeded found full inbox invalid
limit many over quota rate refused rejected storage such timed unavailable unknown valid virus`.split(/\s/),
)
const isOrdinary = (local: string): boolean => /^\d*$/.test(local) || ordinaryWords.has(local.toLowerCase())

/** A reply that shares so many characters in a row with a part of the link has quoted it, perhaps in part. */
const sharedMin = 8

/**
 * A line without addresses, links and tokens. Almost every reply quotes nothing, so the spellings of what the
 * email holds are made for a line that may have one of them.
 */
export function redact(line: string, email: EmailContent | null): string {
  const own = email === null ? line : withoutLink(withoutWords(line, email), email.url)
  const shapeless = own.replace(/\S+/g, withoutShapes)
  // Last: a code within an address or a token would hide it from the others.
  return email === null ? shapeless : withoutCode(shapeless, email)
}

/** A text without the secrets that a server was sent and may repeat, also in form or base64 encoding. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      new URLSearchParams({ '': secret }).toString().slice(1),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    ])
    .toSorted((a, b) => b.length - a.length) // one may be a part of another
    .reduce((shown, secret) => shown.replaceAll(secret, '<secret>'), text)

/** Between the characters of a code, as people, HTML and quoted-printable group them. */
const grouping = '(?:[- .\\u2010-\\u2015]|=20|<[^<>]{0,60}>){0,3}'

/** The status of a reply, which a short code could be a part of. */
const statusShape = /^\d{3}[ -](?:\d\.\d{1,3}\.\d{1,3}(?: |$))?/

/**
 * In any case and however it is grouped. A code with digits also within a word, where it is as easily read;
 * one of letters alone only as a word, and not if replies use that word.
 */
function withoutCode(line: string, { code }: EmailContent): string {
  if (code === undefined || ordinaryWords.has(code.toLowerCase())) return line
  const characters = code.replaceAll('-', '')
  if (!hasInOrder(line, characters)) return line
  const grouped = [...characters].join(grouping)
  const spelling = /\d/.test(code) ? grouped : `(?<![\\p{L}\\p{N}])${grouped}(?![\\p{L}\\p{N}])`
  const [status = ''] = statusShape.exec(line) ?? []
  return status + line.slice(status.length).replace(new RegExp(spelling, 'giu'), '<code>')
}

/**
 * Whether a text has these characters in order. The expression of a code takes 130 µs to compile, and few
 * replies need it. In any case, `ſ` is an `s`.
 */
function hasInOrder(text: string, characters: string): boolean {
  const lower = text.toLowerCase().replaceAll('ſ', 's')
  let at = -1
  return [...characters.toLowerCase()].every((character) => {
    at = lower.indexOf(character, at + 1)
    return at >= 0
  })
}

type Word = readonly [word: string, mark: string]

function withoutWords(line: string, email: EmailContent): string {
  const lower = inLowerCase(line)
  const [untagged = ''] = email.to.split(/[+@]/, 1)
  const others: readonly Word[] = [
    [email.organisationName ?? '', '<name>'],
    [email.inviterName ?? '', '<name>'],
    [readToken(email.url), '<token>'],
  ]
  const addresses = lower.includes(inLowerCase(untagged)) ? addressWords(email.to, untagged) : []
  return [...addresses, ...others]
    .filter(([word]) => word.length >= wordMin)
    .map(([word, mark]) => [inLowerCase(word), mark] as const)
    .reduce((text, word) => (lower.includes(word[0]) ? withoutWord(text, word) : text), line)
}

/** The recipient in its spellings; each contains its local part, up to a tag. */
function addressWords(to: string, untagged: string): Word[] {
  const [local = '', domain = ''] = to.split('@')
  const whole = ['@', '%40', ' at '].map((at) => `${local}${at}${domain}`)
  const alone = [local, untagged].filter((text) => !isOrdinary(text))
  return [...whole, ...alone].map((text) => [text, '<address>'])
}

const readToken = (url: string): string => {
  const begin = /[?&]token=/.exec(url)
  return begin === null ? '' : (url.slice(begin.index + begin[0].length).split('#', 1)[0] ?? '')
}

/**
 * Parts of the link's path and query, as they are and decoded. Its host is not secret. Plain words in small
 * letters, such as `authentication`, are not either, and diagnoses need them.
 */
function secretParts(url: string): string[] {
  const begin = url.indexOf('://')
  const path = url.indexOf('/', begin < 0 ? 0 : begin + 3)
  const text = path < 0 ? '' : url.slice(path)
  const more = text.includes('%') ? decoded(text).split(/[/?&=#:]/) : []
  const parts = [...text.split(/[/?&=#:]/), ...more]
  return parts.filter((part) => part.length >= sharedMin && /[^a-z._-]/.test(part)).map(inLowerCase)
}

/** Keeps the length, so that places in it are places in the text: some capitals have two small letters. */
function inLowerCase(text: string): string {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return text.replace(/[^a-z]/g, (character) => {
    const small = character.toLowerCase()
    return small.length === character.length ? small : character
  })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

const isPartOfWord = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}]/u.test(character)

function withoutWord(line: string, [word, mark]: Word): string {
  const lower = inLowerCase(line)
  let [result, from] = ['', 0]
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
    if (isPartOfWord(lower[at - 1]) || isPartOfWord(lower[at + word.length])) continue
    result += line.slice(from, at) + mark
    from = at + word.length
  }
  return result + line.slice(from)
}

/** Every run without spaces that shares `sharedMin` characters with the link. */
function withoutLink(line: string, url: string): string {
  let parts: readonly string[] | null = null
  return line.replace(/\S+/g, (run) => {
    if (run.length < sharedMin) return run
    parts ??= secretParts(url)
    return sharesWith(inLowerCase(run), parts) ? '<link>' : run
  })
}

function sharesWith(run: string, link: readonly string[]): boolean {
  for (let at = 0; at + sharedMin <= run.length; at++) {
    const shared = run.slice(at, at + sharedMin)
    if (link.some((part) => part.includes(shared))) return true
  }
  return false
}

/** One word of a line, without what looks like a link, a token or an address. */
function withoutShapes(word: string): string {
  const colon = word.indexOf('://')
  if (colon >= 0) return `${word.slice(0, schemeBegin(word, colon))}<link>`
  const token = word.toLowerCase().indexOf('token=')
  if (token >= 0) return `${word.slice(0, token)}<token>`
  if (!word.includes('@')) return word
  return word
    .split(/([<>"'(),;:])/)
    .map((part) => (/[^@]@./.test(part) ? '<address>' : part))
    .join('')
}

/** Where the scheme before `colon` begins. */
function schemeBegin(word: string, colon: number): number {
  let begin = colon
  while (begin > 0 && /[a-z0-9+.-]/i.test(word[begin - 1] ?? '')) begin--
  return begin
}
