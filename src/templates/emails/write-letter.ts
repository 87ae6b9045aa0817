/**
 * The words of an email. Names in an invitation are text that other people typed: they are quoted, never
 * become links, appear in the subject only if they are plain, and never in the preheader.
 */

import type { EmailContent } from '../../domain/delivery/email-content.ts'
import type { EmailType } from '../../domain/request/email-request.ts'
import type { Strings } from '../locales/strings.ts'
import { type Expiry, isPlainName, type Letter } from './letter.ts'

type LetterInput = {
  readonly type: EmailType
  /** The app's name. */
  readonly app: string
  readonly content: Pick<EmailContent, 'organisationName' | 'inviterName'>
  readonly expiry: Expiry
}

export function writeLetter(strings: Strings, { type, app, content, expiry }: LetterInput): Letter {
  const expires = strings.expires(expiry)
  if (type === 'organisation_invite') {
    const { ignore, ...words } = strings.invitation(app, toInvitation(content))
    return { ...words, expires, notes: [ignore] }
  }
  const { ignore, ...words } = strings.words(type, app)
  return { ...words, expires, notes: isPrivate[type] ? [ignore, strings.keepPrivate] : [ignore] }
}

/** Somebody else could sign in, or choose a password, with the link. */
const isPrivate: Readonly<Record<EmailType, boolean>> = {
  magic_link: true,
  email_verification: false,
  password_reset: true,
  organisation_invite: false,
}

const toInvitation = ({ organisationName = '', inviterName }: LetterInput['content']) => ({
  organisationName,
  ...(inviterName !== undefined && { inviterName }),
  plain: isPlainName(organisationName),
})
