/**
 * Finds what is known of an email where a server writes it in base64, base64url or hexadecimal digits, alone
 * or within a longer text. Such a run is hidden as a whole.
 */
import { decodeText, findAll, isAscii, toSpan, unfold } from './letters.ts'
import type { Mark, Span } from './spans.ts'

export type Value = { readonly value: string; readonly mark: Mark }
type Wanted = { readonly bytes: string; readonly mark: Mark }

/** Fewer bytes occur by chance. */
const bytesMin = 3
/** So many bytes in a row are enough of a longer value, as a server may cut it. */
const sharedMin = 8

/** @param lineCode the code with which each line of the reply begins */
export function findEncoded(line: string, lineCode: string | null, values: readonly Value[]): Span[] {
  const wanted = values
    .map(({ value, mark }) => ({
      bytes: isAscii(value) ? value.toLowerCase() : toBytes(Buffer.from(value)),
      mark,
    }))
    .filter(({ bytes }) => bytes.length >= bytesMin)
  const find = (text: string): Span[] => {
    const unfolded = lineCode === null ? text : unfold(text, lineCode)
    return toRuns(unfolded, [...findBase64(unfolded, wanted), ...findHex(unfolded, wanted)])
  }
  const decoded = decodeText(line)
  const escaped = decoded.text === line ? [] : find(decoded.text)
  return [...find(line), ...escaped.map(({ from, to, mark }) => toSpan(decoded, from, to - from, mark))]
}

/** A byte is a character, and capitals are small letters, as servers write addresses and codes in either. */
const toBytes = (bytes: Buffer): string => bytes.toString('latin1').toLowerCase()

/**
 * A value may begin at any of the four characters that are three bytes, so the text is read at each, without
 * what is between its digits, such as the end of a line.
 */
function findBase64(text: string, wanted: readonly Wanted[]): Span[] {
  const digits = text.replace(/[^\w+/-]+/g, '')
  const size = 4 * Math.ceil((digits.length + 3) / 4)
  const all = [0, 1, 2, 3].map((offset) => 'A'.repeat(offset) + digits.padEnd(size - offset, 'A')).join('')
  const quoted = findQuoted(toBytes(Buffer.from(all, 'base64')), wanted)
  const places = quoted.length === 0 ? [] : listPlaces(text, /[\w+/-]/g)
  return quoted.map(({ at, length, mark }) => {
    const [first, end] = [Math.floor((at * 4) / 3), Math.ceil(((at + length) * 4) / 3)]
    const offset = Math.floor(first / size)
    const toPlace = (digit: number) => places[(digit % size) - offset]
    return { from: toPlace(first) ?? 0, to: (toPlace(end - 1) ?? text.length) + 1, mark }
  })
}

function findHex(text: string, wanted: readonly Wanted[]): Span[] {
  const digits = text.replace(/[^a-z\d]+/gi, '')
  const quoted = Array.from(digits.matchAll(/[\da-f]{6,}/gi)).flatMap(({ 0: run, index }) =>
    [0, 1].flatMap((offset) =>
      findQuoted(toBytes(Buffer.from(run.slice(offset), 'hex')), wanted).map(({ at, length, mark }) => ({
        first: index + offset + 2 * at,
        end: index + offset + 2 * (at + length),
        mark,
      })),
    ),
  )
  const places = quoted.length === 0 ? [] : listPlaces(text, /[a-z\d]/gi)
  return quoted.map(({ first, end, mark }) => ({
    from: places[first] ?? 0,
    to: (places[end - 1] ?? text.length) + 1,
    mark,
  }))
}

const listPlaces = (text: string, digit: RegExp): number[] => Array.from(text.matchAll(digit), ({ index }) => index)

/** Each place is hidden with the whole run that it is in, and a run once for each mark. */
function toRuns(text: string, found: readonly Span[]): Span[] {
  const shown = new Map<Mark, number>()
  const runs: Span[] = []
  for (const { from, to, mark } of found.toSorted((a, b) => a.from - b.from)) {
    if (to <= (shown.get(mark) ?? 0)) continue
    let [begin, end] = [from, to]
    while (/[\w+/-]/.test(text[begin - 1] ?? '')) begin--
    while (/[\w+/=-]/.test(text[end] ?? '')) end++
    shown.set(mark, end)
    runs.push({ from: begin, to: end, mark })
  }
  return runs
}

type Place = { readonly at: number; readonly length: number; readonly mark: Mark }

/** Where the values are in the bytes that were read, whole or cut. */
function findQuoted(read: string, wanted: readonly Wanted[]): Place[] {
  const quoted: Place[] = []
  for (const { bytes, mark } of wanted)
    for (const at of findAll(read, bytes)) quoted.push({ at, length: bytes.length, mark })
  for (const { 0: run, index } of read.matchAll(/[ -~]{8,}/g))
    for (let at = 0; at + sharedMin <= run.length; at++) {
      const part = run.slice(at, at + sharedMin)
      for (const { bytes, mark } of wanted)
        if (bytes.includes(part)) quoted.push({ at: index + at, length: sharedMin, mark })
    }
  return quoted
}
