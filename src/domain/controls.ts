/**
 * Control characters, in one place: which there are, and how text from outside loses them. They change how
 * the surrounding text is read, or are commands to a terminal: C0 and C1 controls, line and paragraph
 * separators, and text direction controls (UAX #9).
 */
const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u

/** Names and senders must not contain them. */
export const hasControls = (text: string): boolean => controls.test(text)

/**
 * Characters that render as nothing. Joiners and variation selectors are allowed, because Persian, Indic
 * scripts, Mongolian, Japanese names and emoji need them. U+2800 is the blank Braille pattern.
 */
const invisible =
  /[[\p{Default_Ignorable_Code_Point}\u2800]--[\u180b-\u180d\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}]]/v
/** No orthography puts so many combining marks in a row: they cover the lines above and below. */
const stacked = /\p{M}{7}/u
/** A character that is seen by itself. */
const seen = /[^\s\p{M}\p{Default_Ignorable_Code_Point}]/u

/** As errors name them. */
export const deceptive = 'control or invisible characters, or more than six combining marks in a row'

/** Whether a name would deceive its reader, or deface the text around it. */
export const isDeceptive = (name: string): boolean =>
  hasControls(name) || invisible.test(name) || stacked.test(name) || (!seen.test(name) && name.trim() !== '')

/**
 * One line for a record, of so many characters: spaces of any kind become one space, and characters that
 * nobody sees are removed, since they could stand between the letters of an address. NFKC makes one form of
 * letters, digits and signs that look alike, such as `＠`. A word that the bound cuts is left out, because a
 * part of an address does not look like one.
 */
export function cleanLine(text: string, charactersMax: number): string {
  if (text.length <= charactersMax && /^[\x20-\x7e]*$/.test(text) && !text.includes('  ')) return text
  const line = text
    .slice(0, charactersMax)
    .toWellFormed()
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(/\s+/g, ' ')
    .replace(/\p{Cc}/gu, '')
  if (text.length <= charactersMax && line.length <= charactersMax) return line
  const bounded = line.slice(0, charactersMax).toWellFormed()
  return bounded.includes(' ') ? bounded.slice(0, bounded.lastIndexOf(' ') + 1) : bounded
}

const unprintable = new RegExp(controls.source, 'gu')

/** Text that a terminal shows and does not obey. Its line breaks stay. */
export const toPrintable = (text: string): string =>
  text.toWellFormed().replace(unprintable, (character) => (character === '\n' ? character : '?'))

/** The same on one line: a line break in a value could pass for the next row. */
export const toPrintableLine = (text: string): string => toPrintable(text.replace(/\s*[\r\n]\s*/g, ' '))

/**
 * Control characters as escapes, for text that stays what it is when they are written so. Line breaks stay.
 * @param write an escape, from the number in hexadecimal digits
 */
export const escapeControls = (text: string, write: (hex: string) => string): string =>
  text.replace(unprintable, (character) =>
    character === '\n' ? character : write(character.charCodeAt(0).toString(16).padStart(4, '0')),
  )
