/**
 * The letters and digits of a line, in small letters and with their places. A value is found by its letters
 * and digits alone, so it is found however a server writes it: in capitals, in percent or quoted-printable
 * encoding, with other signs between, or cut by a line break.
 */
import type { Mark, Span } from './spans.ts'

export type Letters = {
  readonly text: string
  /** Where each begins and ends in the line. */
  readonly starts: readonly number[]
  readonly ends: readonly number[]
  /** How many other characters are in front of each; an escape and a space count as one. */
  readonly gaps: readonly number[]
  /** Whether a space is among these. */
  readonly spaced: readonly boolean[]
}

type Places = Pick<Letters, 'starts' | 'ends'>

type Reading = {
  /** Reads `%40`, `=40`, `&#64;` and `\u0040` as the character that they stand for. */
  readonly decodes?: boolean
  /** Reads no tags of HTML. */
  readonly skipsTags?: boolean
  /** The code of a reply of several lines, each of which begins with it; it is not read. */
  readonly lineCode?: string | null
}

const escapes = /(?:(?:%(?:25){0,2}|=)[0-9a-f]{2})+/iy
const entity = /&(?:#0{0,6}(\d{1,6})|#x0{0,6}([0-9a-f]{1,5})|([a-z]{2,6}));/iy
/** Escapes of JSON, JavaScript and C, with several backslashes where they were quoted again. */
const backslash =
  /(?:\\{1,4}(?:u0{4}|u)|%u)([\da-f]{4})|\\{1,4}x([\da-f]{2})|\\{1,4}[ux]\{([\da-f]{1,6})\}|\\{1,4}([0-7]{3})/iy
const entities: ReadonlyMap<string, string> = new Map([
  ['commat', '@'],
  ['period', '.'],
  ['colon', ':'],
  ['sol', '/'],
  ['quest', '?'],
  ['equals', '='],
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
])
/** It ends at the next `<`, so that a line is walked once. */
const tag = /<[^<>]*>/y
/** The beginning of a further line, often with the enhanced code. */
const nextLine = /(\d{3})[ -](?:\d\.\d{1,3}\.\d{1,3} )?/y
/** A text with spaces in place of the codes with which its further lines begin. */
export const unfold = (text: string, lineCode: string): string =>
  text.replaceAll(/ (\d{3})[ -](?:\d\.\d{1,3}\.\d{1,3} )?/g, (found, code) =>
    code === lineCode ? ' '.repeat(found.length) : found,
  )
const letter = /[\p{L}\p{N}]/u
export const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** The letters and digits of a text, in small letters. */
export const lettersOf = (text: string): string =>
  isAscii(text) ? text.toLowerCase().replace(/[^a-z\d]+/g, '') : readLetters(text.normalize('NFKC')).text

export function readLetters(line: string, reading: Reading = {}): Letters {
  const { decodes = false, skipsTags = false, lineCode = null } = reading
  const found = new Finder()
  const small = line.toLowerCase()
  const hasPlaces = small.length === line.length // some capitals have two small letters
  for (let at = 0; at < line.length; ) {
    if (hasPlaces && isAsciiLetter(small.charCodeAt(at))) {
      found.push(small[at] ?? '', at, at + 1)
      at += 1
      continue
    }
    const special = readSpecial(line, at, { decodes, skipsTags, lineCode })
    if (special !== null) {
      found.add(special.text, at, special.to)
      at = special.to
      continue
    }
    const character = String.fromCodePoint(line.codePointAt(at) ?? 0)
    found.add(character, at, at + character.length)
    at += character.length
  }
  return found
}

/** True for small letters and digits. */
const isAsciiLetter = (unit: number): boolean => (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57)

class Finder implements Letters {
  text = ''
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly gaps: number[] = []
  readonly spaced: boolean[] = []
  #gap = 0
  #isSpaced = false

  /** Adds the text that stands between two places of the line. */
  add(text: string, from: number, to: number): void {
    if (text === ' ') this.#isSpaced = true
    for (const character of text) {
      for (const small of character.toLowerCase()) {
        if (letter.test(small)) this.push(small, from, to)
        else this.#gap += 1
      }
    }
  }

  /** Adds a small letter, which may have two units of text. */
  push(small: string, from: number, to: number): void {
    this.text += small
    for (let unit = 0; unit < small.length; unit++) {
      this.starts.push(from)
      this.ends.push(to)
      this.gaps.push(this.#gap)
      this.spaced.push(this.#isSpaced)
      this.#gap = 0
      this.#isSpaced = false
    }
  }
}

type Special = { readonly text: string; readonly to: number }

const matchAt = (shape: RegExp, line: string, at: number): RegExpExecArray | null => {
  shape.lastIndex = at
  return shape.exec(line)
}

/** The text that an escape or a tag at a place of a line stands for; null for a plain character. */
function readSpecial(line: string, at: number, { decodes, skipsTags, lineCode }: Reading): Special | null {
  const character = line[at] ?? ''
  if (character === ' ') {
    const [skipped = '', code] = lineCode === null ? [] : (matchAt(nextLine, line, at + 1) ?? [])
    return { text: ' ', to: at + 1 + (code === lineCode ? skipped.length : 0) }
  }
  if (skipsTags && character === '<') {
    const found = matchAt(tag, line, at)
    if (found !== null) return { text: '', to: at + found[0].length }
  }
  for (const { begins, shape, decode } of decodes ? encodings : []) {
    const found = begins.includes(character) ? matchAt(shape, line, at) : null
    const text = found === null ? null : decode(found)
    if (found !== null && text !== null) return { text, to: at + found[0].length }
  }
  return null
}

/** Null if the bytes are no text: then these are no escapes. */
function decodeEscapes([text]: RegExpExecArray): string | null {
  try {
    return decodeURIComponent(text.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, '%').replaceAll('=', '%'))
  } catch {
    return null
  }
}

function decodeEntity([, decimal, hex, name = '']: RegExpExecArray): string {
  if (decimal === undefined && hex === undefined) return entities.get(name.toLowerCase()) ?? ' '
  return toText(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal))
}

function decodeBackslash([, ...codes]: RegExpExecArray): string {
  const octal = codes.pop()
  const hex = codes.find((code) => code !== undefined) ?? ''
  return toText(octal === undefined ? Number.parseInt(hex, 16) : Number.parseInt(octal, 8))
}

const encodings = [
  { begins: '\\%', shape: backslash, decode: decodeBackslash },
  { begins: '%=', shape: escapes, decode: decodeEscapes },
  { begins: '&', shape: entity, decode: decodeEntity },
] as const

const toText = (point: number): string => (point <= 0x10ffff ? String.fromCodePoint(point) : ' ')

/** A text with its escapes read, as far as they are text; without places if it has none. */
export function decodeText(line: string, { skipsTags = false }: Reading = {}): Pick<Letters, 'text'> & Places {
  if (!/[%=&<\\]/.test(line)) return { text: line, starts: [], ends: [] }
  const read = { text: '', starts: [] as number[], ends: [] as number[] }
  for (let at = 0; at < line.length; ) {
    const special = line[at] === ' ' ? null : readSpecial(line, at, { decodes: true, skipsTags })
    const { text, to } = special ?? { text: line[at] ?? '', to: at + 1 }
    read.text += text
    for (let unit = 0; unit < text.length; unit++) {
      read.starts.push(at)
      read.ends.push(to)
    }
    at = to
  }
  return read
}

export function findAll(text: string, part: string): number[] {
  const found: number[] = []
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) found.push(at)
  return found
}

export const toSpan = ({ starts, ends }: Places, at: number, length: number, mark: Mark): Span => ({
  from: starts[at] ?? 0,
  to: ends[at + length - 1] ?? 0,
  mark,
})

/** As many other characters may be between two letters of a value, as people and HTML group them. */
const gapMax = 3

/** No letter stands directly in front of it or behind. */
export const isWhole = ({ gaps }: Letters, at: number, length: number): boolean =>
  (at === 0 || gaps[at] !== 0) && (at + length >= gaps.length || gaps[at + length] !== 0)

/** No more than a few other characters are within it. */
export function isJoined({ gaps, spaced }: Letters, at: number, length: number, maySpan: boolean): boolean {
  for (let inner = at + 1; inner < at + length; inner++)
    if ((gaps[inner] ?? 0) > gapMax || (spaced[inner] === true && !maySpan)) return false
  return true
}
