/**
 * Finds what looks like a link, a secret, a token or an address, in any line. Each word is also judged as it
 * reads without escapes; one that is a link only then goes as a whole. Searches are for fixed texts or walk
 * from one place, so that the work grows with the line.
 */
import { decodeText } from './letters.ts'
import { findMatches, type Mark, type Span } from './spans.ts'

/** @param min runs of so many characters can be tokens */
export function findShapes(line: string, min: number): Span[] {
  const spans = [...findSpacedAddresses(line)]
  let isLinkOpen = false
  for (const { 0: word, index } of line.matchAll(/\S+/g)) {
    const found = isLinkOpen ? [whole(word, '<link>')] : findInWord(word, min)
    isLinkOpen = /:[\\/]+$/.test(word.slice(-4)) // a space between the scheme and the host
    spans.push(...found.map(({ from, to, mark }) => ({ from: index + from, to: index + to, mark })))
  }
  return spans
}

const whole = (word: string, mark: Mark): Span => ({ from: 0, to: word.length, mark })

/** A word of none of these has no link and no address, and most have none. */
const signsOfMore = /[@:/?#=%!&\\([{_]|eyJ/

function findInWord(word: string, min: number): Span[] {
  if (!signsOfMore.test(word)) return findOpaque(word, min)
  const plain = findPlain(word, min)
  if (!/[%=&[({\\]/.test(word)) return plain
  const decoded = readDefanged(decodeText(word).text)
  if (decoded === word) return plain
  // The decoded word has other places: one that looks like more than the plain one goes as a whole.
  const more = findPlain(decoded, min).filter(
    ({ mark }) => mark === '<link>' || !plain.some((span) => span.mark === mark),
  )
  return [...plain, ...more.map(({ mark }) => whole(word, mark))]
}

/** `hxxps[:]//acme[.]test`, as people write links that nobody should follow. */
const readDefanged = (word: string): string =>
  word
    .replace(/[[({](\.|dot|:|@|at|\/)[\])}]/gi, (_, sign: string) => signs.get(sign.toLowerCase()) ?? sign)
    .replaceAll('\\/', '/')

const signs: ReadonlyMap<string, string> = new Map(Object.entries({ dot: '.', at: '@' }))

function findPlain(word: string, min: number): Span[] {
  const found = [findLink(word), findBareLink(word), findNamed(word), ...findAddresses(word)]
  return [...found.filter((span) => span !== null), ...findSecrets(word), ...findOpaque(word, min)]
}

/** From the scheme to the end of the word. */
function findLink(word: string): Span | null {
  const colon = ['://', ':\\\\'].map((text) => word.indexOf(text)).find((at) => at >= 0)
  if (colon === undefined) return null
  let from = colon
  while (from > 0 && /[a-z0-9+.-]/i.test(word[from - 1] ?? '')) from--
  return { from, to: word.length, mark: '<link>' }
}

/** `links.acme.test/acme/…`, with a path or a query after the host. A network such as 192.0.2.0/24 stays. */
function findBareLink(word: string): Span | null {
  for (const { index } of word.matchAll(/[/?#]/g)) {
    let from = index
    while (from > 0 && /[\p{L}\p{N}.:-]/u.test(word[from - 1] ?? '')) from--
    const [host, rest] = [word.slice(from, index), word.slice(index + 1)]
    const isNetwork = /^[\d.]+$/.test(host) && /^\d{1,2}\W*$/.test(rest)
    if (isHost(host) && /[\p{L}\p{N}]/u.test(rest) && !isNetwork) return { from, to: word.length, mark: '<link>' }
  }
  return null
}

const hostMax = 253

function isHost(text: string): boolean {
  if (text.length > hostMax) return false
  const [name = ''] = text.split(':', 1)
  const labels = name.split('.')
  if (name.toLowerCase() === 'localhost' || (labels.length === 4 && labels.every((label) => /^\d{1,3}$/.test(label))))
    return true
  return labels.length > 1 && labels.every((label) => label !== '') && /^(?:xn--|\p{L}{2})/iu.test(labels.at(-1) ?? '')
}

const named = ['token=', 'otp=', 'secret=', 'password=', 'passwd=', 'pwd=', 'ticket=', 'signature=', 'token_hash=']

/** `token=…`, to the end of the word. */
function findNamed(word: string): Span | null {
  const small = word.toLowerCase()
  const places = named.map((name) => small.indexOf(name)).filter((at) => small.length === word.length && at >= 0)
  return places.length === 0 ? null : { from: Math.min(...places), to: word.length, mark: '<token>' }
}

/** Secrets that Postern makes, and JSON web tokens. */
const findSecrets = (word: string): Span[] => findMatches(word, /(?:(?:ps[thals]|whsec)_|eyJ)[\w+/=.-]+/g, '<secret>')

/** Such as `base64url`, base62, hexadecimal digits. Labels of a host name stay. */
function findOpaque(word: string, min: number): Span[] {
  if (word.length < min) return []
  return Array.from(word.matchAll(/[\w+=.-]+/g), ({ 0: run, index }) => ({ run, index }))
    .filter(({ run }) => run.length >= min && !isServerName(run))
    .flatMap(({ run, index }) =>
      Array.from(run.matchAll(/[\w+=-]+/g), ({ 0: part, index: within }) => ({ part, from: index + within })),
    )
    .filter(({ part }) => part.length >= min && !dateHead.test(part) && looksRandom(part))
    .map(({ part, from }) => ({ from, to: from + part.length, mark: '<token>' }))
}

/** The beginning of `2024-02-19T09:30:25Z`. */
const dateHead = /^\d{4}-\d{2}-\d{2}T\d{2}$/

/** Labels of the names of mail servers are no longer. */
const labelMax = 24

/** A host name whose last label is in one case, as `MX1A2B.PROD.OUTLOOK.COM`. */
export function isServerName(text: string): boolean {
  const labels = text.replace(/\.$/, '').split('.')
  const last = labels.at(-1) ?? ''
  const isName = labels.length > 1 && /^(?:[a-z]{2,}|[A-Z]{2,})$/.test(last)
  return (
    isName &&
    labels.every((label) => label.length <= labelMax && /^[A-Za-z\d](?:[A-Za-z\d_-]*[A-Za-z\d])?$/.test(label))
  )
}

/**
 * Whether no words make it up: a part has letters and digits, or letters of both cases that change often.
 * `SubmissionQuotaExceededException` and `COL0-MC1-F1-2024` are made of words.
 */
function looksRandom(run: string): boolean {
  const parts = run.split(/[-_+=]+/).filter((part) => part !== '')
  const isMixed = parts.some((part) => /\d/.test(part) && /[a-z]/i.test(part) && part.length > 4)
  if (isMixed) return true
  const capitals = run.replace(/[^A-Z]/g, '').length
  const small = run.replace(/[^a-z]/g, '').length
  return (
    Math.min(capitals, small) * 5 > run.length && parts.some((part) => /[a-z][A-Z]{2,}[a-z]|[A-Z][a-z][A-Z]/.test(part))
  )
}

/** `ada@example.com` with all that belongs to it: a quoted local part, `<`, a domain in brackets. */
function findAddresses(word: string): Span[] {
  const spans: Span[] = []
  for (let at = word.indexOf('@'); at >= 0; at = word.indexOf('@', at + 1)) {
    const isQuoted = /["')>\]]/.test(word[at - 1] ?? '')
    let from = isQuoted ? Math.max(word.lastIndexOf(opening.get(word[at - 1] ?? '') ?? '', at - 2), 0) : at
    while (!isQuoted && from > 0 && !/[<>"'(),;:[\]{}|]/.test(word[from - 1] ?? '')) from--
    let to = at + 1
    if (word[to] === '[') to = word.indexOf(']', to) < 0 ? word.length : word.indexOf(']', to) + 1
    while (to < word.length && !/[<>"'(),;:[\]{}|]/.test(word[to] ?? '')) to++
    if (from < at && to > at + 1) spans.push({ from, to, mark: '<address>' })
    at = to - 1
  }
  return [...spans, ...findRoutes(word)]
}

const opening: ReadonlyMap<string, string> = new Map(
  Object.entries({ '"': '"', "'": "'", ')': '(', '>': '<', ']': '[' }),
)

/** Names of the values that servers write beside a host. */
const hostKeys =
  /(?:^|[.-])(?:host|hostname|helo|ehlo|domain|d|s|server|mx|name|ptr|rdns|client|mailfrom|from|by|mta|ip)$/i

/** The address of a bounce (`ada=example.com`), a relay (`ada%example.com`) and UUCP (`example.com!ada`). */
function findRoutes(word: string): Span[] {
  for (const { 0: sign, index } of word.matchAll(/[=%!]/g)) {
    let [from, to] = [index, index + 1]
    while (from > 0 && /[\w.+-]/.test(word[from - 1] ?? '')) from--
    while (to < word.length && /[\w.+-]/.test(word[to] ?? '')) to++
    const [left, right] = [word.slice(from, index), word.slice(index + 1, to).replace(/\.+$/, '')]
    const isRoute =
      sign === '!' ? isServerName(left) && right !== '' : left !== '' && isServerName(right) && !hostKeys.test(left)
    if (isRoute) return [{ from, to, mark: '<address>' }]
  }
  return []
}

const isAt = (word: string | undefined): boolean => /^[([{]?at[)\]}]?$/i.test(word ?? '')
const isDot = (word: string | undefined): boolean => /^[([{]?dot[)\]}]?$/i.test(word ?? '')

/** `"ada lovelace"@example.com`, `ada @ example.com`, and `ada at example dot com`. */
function findSpacedAddresses(line: string): Span[] {
  if (!/@| [([{]?at[ )\]}]/i.test(line)) return []
  const spans = findMatches(line, /"[^"@]{0,64}" ?@ ?[^\s<>"]*/g, '<address>')
  const words = Array.from(line.matchAll(/\S+/g), ({ 0: text, index }) => ({
    text,
    from: index,
    to: index + text.length,
  }))
  for (const [n, word] of words.entries()) {
    const [before, after] = [words[n - 1], words[n + 1]]
    if (/^@|@$/.test(word.text)) {
      const from = word.text.startsWith('@') ? (before ?? word).from : word.from
      const to = word.text.endsWith('@') ? (after ?? word).to : word.to
      spans.push({ from, to, mark: '<address>' })
    } else if (before !== undefined && after !== undefined && isAt(word.text)) {
      const isDotted = isDot(words[n + 2]?.text)
      const end = isDotted ? words[n + 3] : after
      if (isDotted || /^[([{]/.test(word.text))
        spans.push({ from: before.from, to: (end ?? after).to, mark: '<address>' })
    }
  }
  return spans
}
