/** The name and the expiry of a key, a token or a person. */
import { Type } from 'typebox'
import { hasControls } from '../../domain/controls.ts'
import { type Parsed, parsed, refused } from '../../domain/parsed.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import type { Store } from '../../store/store.ts'
import { orNull } from './schema.ts'

export const nameField = () => Type.String({ minLength: 1, maxLength: 100, examples: ['production', 'staging'] })
export const expiryField = () => orNull(Type.String({ format: 'date-time', examples: ['2099-01-31T00:00:00Z'] }))

/** A name that people see in lists: not blank, without control characters. */
export function parseName(name: string): Parsed<string> {
  if (name.trim() === name && !hasControls(name)) return parsed(name)
  const message = '1 to 100 characters, without control characters or leading or trailing spaces.'
  return refused({ field: 'name', code: 'malformed_text', message })
}

/** Milliseconds since 1970, in the future. */
export function parseExpiry(text: string, { now }: Pick<Store, 'now'>): Parsed<number> {
  const at = parseTimestamp(text, 'expiresAt')
  if (!at.ok || at.value > now()) return at
  return refused({
    field: 'expiresAt',
    code: 'in_the_past',
    message: 'This time has passed; give a later one.',
  })
}
