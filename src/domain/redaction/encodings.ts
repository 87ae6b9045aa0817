/**
 * Finds what is known of an email where a server writes it in base64, base64url or hexadecimal digits, alone
 * or within a longer text. Such a run is hidden as a whole.
 */
import { findAll, isJoined, type Letters, toSpan } from './letters.ts'
import type { Mark, Span } from './spans.ts'

export type Value = { readonly value: string; readonly mark: Mark }

/** A value in an encoding. */
type Pattern = { readonly text: string; readonly isHex: boolean; readonly mark: Mark }

/** Eight bytes of a value: 10 whole characters of base64, 16 of hexadecimal digits. */
const sizes = { base64: 10, hex: 16 } as const
/** Three bytes, in base64 and hexadecimal digits; fewer occur by chance. */
const lengthMin = { base64: 4, hex: 6 } as const

export function findEncoded(readings: readonly Letters[], line: string, values: readonly Value[]): Span[] {
  const patterns = values.flatMap(({ value, mark }) => encode(value, mark))
  return [true, false].flatMap((isHex) => {
    const size = isHex ? sizes.hex : sizes.base64
    const wanted = patterns.filter((pattern) => pattern.isHex === isHex)
    const short = wanted.filter(({ text }) => text.length <= size)
    const long = wanted.filter(({ text }) => text.length > size)
    return readings.flatMap((letters) => {
      const read = isHex ? letters.text : letters.cased
      const found = [
        ...short.flatMap(({ text, mark }) =>
          findAll(read, text).map((at) => ({ at, size: text.length, mark })),
        ),
        ...findShared(read, long, size),
      ]
      return toRuns(letters, line, found)
    })
  })
}

function encode(value: string, mark: Mark): Pattern[] {
  const hex = { text: Buffer.from(value).toString('hex'), isHex: true, mark }
  const base64 = ([0, 1, 2] as const).map((offset) => ({ text: encodeAt(value, offset), isHex: false, mark }))
  return [hex, ...base64].filter(
    ({ text, isHex }) => text.length >= (isHex ? lengthMin.hex : lengthMin.base64),
  )
}

/** The base64 characters of a value that depend on it alone, when so many bytes are in front of it. */
function encodeAt(value: string, offset: 0 | 1 | 2): string {
  const text = Buffer.from('\0'.repeat(offset) + value).toString('base64')
  const missing = text.endsWith('==') ? 3 : text.endsWith('=') ? 2 : 0
  return text.slice(offset === 0 ? 0 : offset + 1, text.length - missing).replace(/[+/]/g, '')
}

type Found = { readonly at: number; readonly size: number; readonly mark: Mark }

/** The places where so many characters in a row are those of a pattern. */
function findShared(read: string, patterns: readonly Pattern[], size: number): Found[] {
  const all = patterns.map(({ text }) => text).join(' ')
  const found: Found[] = []
  for (let at = 0; at + size <= read.length; at++) {
    const shared = read.slice(at, at + size)
    if (!all.includes(shared)) continue
    const mark = patterns.find(({ text }) => text.includes(shared))?.mark
    if (mark !== undefined) found.push({ at, size, mark })
  }
  return found
}

/** Each place is hidden with the whole run that it is in, and a run once for each mark. */
function toRuns(letters: Letters, line: string, found: readonly Found[]): Span[] {
  const shown = new Map<Mark, number>()
  const spans: Span[] = []
  for (const { at, size, mark } of found.toSorted((a, b) => a.at - b.at)) {
    if ((letters.starts[at] ?? 0) < (shown.get(mark) ?? 0) || !isJoined(letters, at, size, true)) continue
    const span = wholeRun(line, toSpan(letters, at, size, mark))
    shown.set(mark, span.to)
    spans.push(span)
  }
  return spans
}

function wholeRun(line: string, { from, to, mark }: Span): Span {
  let [begin, end] = [from, to]
  while (begin > 0 && /[\w+/-]/.test(line[begin - 1] ?? '')) begin--
  while (end < line.length && /[\w+/=-]/.test(line[end] ?? '')) end++
  return { from: begin, to: end, mark }
}
