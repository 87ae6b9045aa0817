/**
 * An invitation (spec 2.2 `organisation_invite`). Its names are other people's text: quoted, kept
 * from becoming links, in the subject only when plain, never in the preheader.
 */
import type { EmailContent } from '../../domain/delivery/outcome.ts'
import { isPlainName, type Letter } from './letter.ts'
import type { LetterContext } from './render-email.ts'

export function organisationInvite({ strings, app, expiry }: LetterContext, content: EmailContent): Letter {
  const organisationName = content.organisationName ?? ''
  const { ignore, ...words } = strings.organisationInvite(app.name, {
    organisationName,
    ...(content.inviterName === undefined ? {} : { inviterName: content.inviterName }),
    plain: isPlainName(organisationName),
  })
  return { ...words, notes: [strings.expires(expiry), ignore] }
}
