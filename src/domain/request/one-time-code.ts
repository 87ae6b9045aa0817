/**
 * The one-time code that an email may show beside its link, for people who read mail on another device.
 *
 *   code   = digits / mixed        shown as it was given
 *   digits = 4*10DIGIT
 *   mixed  = 4 to 12 characters: letters and digits with single hyphens between them, at least one letter
 */
import { type Parsed, parsed, refuser } from '../parsed.ts'

/** A code for previews and test emails. */
export const sampleCode = '246813'

const digits = /^\d{4,10}$/
const mixed = /^[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*$/
const mixedMin = 4
const mixedMax = 12

export const isCode = (text: string): boolean =>
  digits.test(text) || (text.length >= mixedMin && text.length <= mixedMax && mixed.test(text) && /[A-Za-z]/.test(text))

export function parseCode(value: unknown, isInvitation: boolean): Parsed<string> {
  const refuse = refuser('code')
  if (isInvitation) return refuse('code_not_for_invitations', 'An invitation has no code: its link is valid for days.')
  if (typeof value !== 'string') return refuse('not_a_string', 'code must be a JSON string.')
  if (isCode(value)) return parsed(value)
  return refuse(
    'malformed_code',
    '4 to 10 digits, or 4 to 12 characters: letters and digits with single hyphens between them, at least one letter.',
  )
}

/** Six and eight characters are easier to read in halves. A padding separates them when they are shown. */
export function splitCode(code: string): readonly [head: string, tail: string] {
  const half = code.length / 2
  return (code.length === 6 || code.length === 8) && !code.includes('-')
    ? [code.slice(0, half), code.slice(half)]
    : [code, '']
}
