/** Confirmation of an address (spec 2.2 `email_verification`). */
import type { Letter } from './letter.ts'
import type { LetterContext } from './letter-context.ts'

export function emailVerification({ strings, app, expiry }: LetterContext): Letter {
  const { ignore, ...words } = strings.emailVerification(app.name)
  return { ...words, expires: strings.expires(expiry), notes: [ignore] }
}
