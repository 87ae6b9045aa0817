/**
 * An invitation (spec 2.2 `organisation_invite`). Its names are text that other people typed: they are
 * quoted, never become links, stand in the subject only if plain, and never in the preheader.
 */
import type { EmailContent } from '../../domain/delivery/email-content.ts'
import { isPlainName, type Letter } from './letter.ts'
import type { LetterContext } from './letter-context.ts'

export function organisationInvite(
  { strings, app, expiry }: LetterContext,
  content: Pick<EmailContent, 'organisationName' | 'inviterName'>,
): Letter {
  const organisationName = content.organisationName ?? ''
  const { ignore, ...words } = strings.organisationInvite(app.name, {
    organisationName,
    ...(content.inviterName === undefined ? {} : { inviterName: content.inviterName }),
    plain: isPlainName(organisationName),
  })
  return { ...words, expires: strings.expires(expiry), notes: [ignore] }
}
