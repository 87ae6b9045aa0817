/** Passwordless sign in (spec 2.2 `magic_link`). */
import type { Letter } from './letter.ts'
import type { LetterContext } from './letter-context.ts'

export function magicLink({ strings, app, expiry }: LetterContext): Letter {
  const { ignore, ...words } = strings.magicLink(app.name)
  return { ...words, expires: strings.expires(expiry), notes: [ignore, strings.keepPrivate] }
}
