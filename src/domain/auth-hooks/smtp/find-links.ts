/**
 * The links of a text, wherever they stand: in words, attributes, comments or styles. One that this reading
 * misses is never sent; one that it finds is judged by the rules for links.
 */

/** More links than any email of an auth server has. */
export const linksMax = 100
/** Longer than any link that the rules allow, so that it is refused and not cut short. */
const linkCharactersMax = 8200
const schemeCharactersMax = 32

const trailing = new Set(".,;:!?)}*|'")

/** Each once, in the order of the text; at most `linksMax + 1`. */
export function findLinks(text: string): string[] {
  const links = new Set<string>()
  for (let at = text.indexOf('://'); at >= 0 && links.size <= linksMax; ) {
    const begin = findScheme(text, at)
    const end = findEnd(text, { begin, from: at + 3 })
    if (begin < at && end > at + 3) links.add(text.slice(begin, end))
    at = text.indexOf('://', Math.max(end, at + 3))
  }
  return [...links]
}

const isScheme = /[a-z0-9+.-]/i

function findScheme(text: string, at: number): number {
  let begin = at
  while (begin > 0 && at - begin < schemeCharactersMax && isScheme.test(text[begin - 1] ?? '')) begin--
  while (begin < at && !/[a-z]/i.test(text[begin] ?? '')) begin++
  return begin
}

/** Links are ASCII. Brackets and quotes end them; an apostrophe does if one stands before them. */
const endsLink = /[^!#-;=?-Z\\^_a-z{|}~]/

function findEnd(text: string, { begin, from }: { readonly begin: number; readonly from: number }): number {
  const isQuoted = text[begin - 1] === "'"
  const max = Math.min(text.length, begin + linkCharactersMax)
  let end = from
  while (end < max && !endsLink.test(text[end] ?? '') && !(isQuoted && text[end] === "'")) end++
  // Punctuation behind a link belongs to the sentence.
  while (end > from && trailing.has(text[end - 1] ?? '')) end--
  return end
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** HTML with its usual character references decoded. */
export const decodeReferences = (html: string): string =>
  html.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[name.toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
