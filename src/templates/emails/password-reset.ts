/** A new password (spec 2.2 `password_reset`). */
import type { Letter } from './letter.ts'
import type { LetterContext } from './letter-context.ts'

export function passwordReset({ strings, app, expiry }: LetterContext): Letter {
  const { ignore, ...words } = strings.passwordReset(app.name)
  return { ...words, expires: strings.expires(expiry), notes: [ignore, strings.keepPrivate] }
}
