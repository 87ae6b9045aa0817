/**
 * Finds what is known of an email where a server writes it in base64, base64url or hexadecimal digits, alone
 * or within a longer text. Such a run is hidden as a whole.
 */
import { decodeText, findAll } from './letters.ts'
import type { Mark, Span } from './spans.ts'

export type Value = { readonly value: string; readonly mark: Mark }
type Wanted = { readonly bytes: string; readonly mark: Mark }

/** Fewer bytes occur by chance. */
const bytesMin = 3
/** So many bytes in a row are enough of a longer value, as a server may cut it. */
const sharedMin = 8

export function findEncoded(line: string, values: readonly Value[]): Span[] {
  const wanted = values
    .map(({ value, mark }) => ({ bytes: toBytes(Buffer.from(value)), mark }))
    .filter(({ bytes }) => bytes.length >= bytesMin)
  const { text, starts, ends } = decodeText(line)
  const escaped = text === line ? [] : findIn(text, wanted)
  return [
    ...findIn(line, wanted),
    ...escaped.map(({ from, to, mark }) => ({ from: starts[from] ?? 0, to: ends[to - 1] ?? 0, mark })),
  ]
}

/** A byte is a character, and capitals are small letters, as servers write addresses and codes in either. */
const toBytes = (bytes: Buffer): string => bytes.toString('latin1').toLowerCase()

const findIn = (text: string, wanted: readonly Wanted[]): Span[] => [
  ...findBase64(text, wanted),
  ...findHex(text, wanted),
]

/** A value may begin at any of the four characters that are three bytes, so the text is read at each. */
function findBase64(text: string, wanted: readonly Wanted[]): Span[] {
  const digits = text.replace(/[^\w+/-]/g, 'A')
  const size = 4 * Math.ceil((text.length + 3) / 4)
  const all = [0, 1, 2, 3].map((offset) => 'A'.repeat(offset) + digits.padEnd(size - offset, 'A')).join('')
  return findQuoted(toBytes(Buffer.from(all, 'base64')), wanted).map(({ at, mark }) => {
    const place = Math.floor((at * 4) / 3)
    let from = (place % size) - Math.floor(place / size)
    let to = from + 1
    while (/[\w+/-]/.test(text[from - 1] ?? '')) from--
    while (/[\w+/=-]/.test(text[to] ?? '')) to++
    return { from, to, mark }
  })
}

const hex = /[\da-f]{2}(?:[ :-]?[\da-f]{2}){2,}[\da-f]?/gi

function findHex(text: string, wanted: readonly Wanted[]): Span[] {
  return Array.from(text.matchAll(hex)).flatMap(({ 0: run, index }) => {
    const digits = run.replace(/[ :-]/g, '')
    return [digits, digits.slice(1)]
      .flatMap((each) => findQuoted(toBytes(Buffer.from(each, 'hex')), wanted))
      .map(({ mark }): Span => ({ from: index, to: index + run.length, mark }))
  })
}

type Place = { readonly at: number; readonly mark: Mark }

/** Where the values are in the bytes that were read, whole or cut. */
function findQuoted(read: string, wanted: readonly Wanted[]): Place[] {
  const whole = wanted.flatMap(({ bytes, mark }) => findAll(read, bytes).map((at) => ({ at, mark })))
  const cut: Place[] = []
  for (const { 0: run, index } of read.matchAll(/[ -~]{8,}/g))
    for (let at = 0; at + sharedMin <= run.length; at++) {
      const part = run.slice(at, at + sharedMin)
      for (const { bytes, mark } of wanted) if (bytes.includes(part)) cut.push({ at: index + at, mark })
    }
  return [...whole, ...cut]
}
