/**
 * The words of an email. Names in an invitation are text that other people typed: they are quoted, never
 * become links, appear in the subject only if they are plain, and never in the preheader.
 */

import type { CodePlace, EmailContent } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../../domain/request/email-kinds.ts'
import { type Expiry, isPlainName, type Letter } from '../letter.ts'
import { letterKinds, type Strings } from '../locales/strings.ts'

type LetterInput = {
  readonly type: EmailType
  /** The app's name. */
  readonly app: string
  readonly content: Pick<EmailContent, 'organisationName' | 'inviterName' | 'purpose'>
  readonly code: CodePlace
  readonly expiry: Expiry
}

export function writeLetter(strings: Strings, { type, app, content, code, expiry }: LetterInput): Letter {
  if (emailKinds[type].hasNames) {
    const { ignore, ...words } = strings.invitation(app, toInvitation(content))
    return { ...words, expires: strings.expires(expiry, 'none'), signOff: null, notes: [ignore] }
  }
  const kind = content.purpose ?? type
  const { ignore, ...words } = strings.words(kind, app, code)
  const keepPrivate = letterKinds[kind].isPrivate || code !== 'none' ? [strings.keepPrivate] : []
  const neverAsk = code === 'none' ? [] : [strings.neverAsk(app)]
  const notes = [ignore, ...keepPrivate, ...neverAsk]
  return { ...words, expires: strings.expires(expiry, code), signOff: null, notes }
}

const toInvitation = ({ organisationName = '', inviterName }: LetterInput['content']) => ({
  organisationName,
  ...(inviterName !== undefined && { inviterName }),
  plain: isPlainName(organisationName),
})
