/** Finds digits in groups that could be a one-time code: `246 813`, `246-813`, `2 4 6 8 1 3`, `24:68:13`. */
import { findMatches, type Span } from './spans.ts'

const codeMin = 4

const replyCodes = new Set(
  `211 214 220 221 235 250 251 252 334 354 421 450 451 452 454 455 500 501 502 503 504 510 511 512 513 515 521
523 530 534 535 538 541 542 550 551 552 553 554 555 556 557 571`.split(/\s/),
)
export const isReplyCode = (digits: string): boolean => replyCodes.has(digits)

export const findDigits = (line: string): Span[] => [
  ...findGroups(line),
  ...findMatches(line, dotted, '<number>'),
  ...findClock(line),
]

const between = '(?:[ \\u2010-\\u2015-]{1,3}|[,/_+*~|\\u00b7\\u2022])'
const groups = new RegExp(`(?<![\\p{L}\\p{N}.:])\\d{1,5}(?:${between}\\d{1,5})+(?![\\p{L}\\p{N}:]|\\.\\d)`, 'gu')
const separator = new RegExp(`(${between})`, 'u')
const dateHead = /^(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)/

/** Codes of replies in front of the groups stay, unless one is the first half of a code, as in `554-813`. */
function findGroups(line: string): Span[] {
  const spans: Span[] = []
  for (const { 0: run, index } of line.matchAll(groups)) {
    if (dateHead.test(line.slice(index, index + 11))) continue
    const parts = run.split(separator)
    let first = 0
    while (isReplyCode(parts[first] ?? '')) first += 2
    if (first > 0 && parts.length - first === 1 && parts[first]?.length === 3) first -= 2
    const digits = parts.slice(first).filter((_, n) => n % 2 === 0)
    if (digits.length < 2 || digits.join('').length < codeMin) continue
    const from = index + parts.slice(0, first).join('').length
    spans.push({ from, to: index + run.length, mark: '<number>' })
  }
  return spans
}

/** Enhanced codes have three numbers with full stops, and IPv4 addresses four. */
const dotted =
  /(?<![\p{L}\p{N}.:-])(?:\d{3,5}\.\d{3,5}|\d\d\.\d\d\.\d\d|\d{1,3}(?:\.\d{1,3}){4,11})(?![\p{L}\p{N}:-]|\.\d)/gu

const ipv6 = /^(?=(?:[^:]*:){2,7}[^:]*$)(?:[\da-f]{0,4}:)+(?:[\da-f]{0,4}|\d{1,3}(?:\.\d{1,3}){3})$/i

/** `24:68:13` is no IPv6 address, and `246::813` is none that a mail server has. */
export function isAddress(text: string): boolean {
  const bare = text.replace(/^IPv6:/i, '')
  const isWhole = bare.split('::').length === 2 || bare.split(':').length === 8
  return bare.length < 46 && isWhole && ipv6.test(bare) && /[a-f]|[\da-f]{4}/i.test(bare)
}

const colons = /(?<![\p{L}\p{N}.:+-])\d{1,5}(?::{1,2}\d{1,5}){1,11}(?![\p{L}\p{N}:-])/gu
const time = /^(?:[01]?\d|2[0-3])(?::[0-5]\d){1,2}$/
const beforeTime = /(?:(?:19|20)\d\d|\d\d-\d\d|[A-Z][a-z]{2} \d{1,2}),? $/

/** After a date they are a time. */
function findClock(line: string): Span[] {
  return findMatches(line, colons, '<number>').filter(({ from, to }) => {
    const run = line.slice(from, to)
    const isTime = time.test(run) && beforeTime.test(line.slice(Math.max(0, from - 8), from))
    return run.replaceAll(':', '').length >= codeMin && !isTime && !isAddress(run)
  })
}
