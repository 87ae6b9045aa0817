/**
 * The subject, HTML and text of one email, from its app's settings and its content. Pure. Emails are
 * rendered at every attempt, because the text says how much time the link has left.
 */
import type { AppSettings } from '../../domain/app/settings.ts'
import type { EmailContent } from '../../domain/delivery/email-content.ts'
import type { EmailType } from '../../domain/request/email-request.ts'
import { languageOf } from '../locales/locales.ts'
import { emailVerification } from './email-verification.ts'
import { renderHtml, renderText } from './layout.ts'
import type { Letter } from './letter.ts'
import type { LetterContext } from './letter-context.ts'
import { magicLink } from './magic-link.ts'
import { organisationInvite } from './organisation-invite.ts'
import { passwordReset } from './password-reset.ts'

export type TemplateInput = {
  readonly app: AppSettings
  readonly type: EmailType
  readonly content: EmailContent
  readonly expiresAt: number
  /** The time that the link has left at this attempt. */
  readonly lifeLeftMs: number
}

export type Rendered = { readonly subject: string; readonly html: string; readonly text: string }

export function renderEmail(input: TemplateInput): Rendered {
  const { app, content } = input
  const { strings, language } = languageOf(app.locale)
  const expiry = { duration: strings.duration(input.lifeLeftMs), dateTime: strings.dateTime(input.expiresAt) }
  const letter = writeLetter(input, { strings, app, expiry })
  const frame = {
    letter,
    strings,
    app,
    language,
    url: content.url,
    host: content.hosted === true ? new URL(content.url).host : null,
  }
  return { subject: letter.subject, html: renderHtml(frame), text: renderText(frame) }
}

function writeLetter(input: TemplateInput, context: LetterContext): Letter {
  switch (input.type) {
    case 'magic_link':
      return magicLink(context)
    case 'email_verification':
      return emailVerification(context)
    case 'password_reset':
      return passwordReset(context)
    case 'organisation_invite':
      return organisationInvite(context, input.content)
    default:
      return input.type satisfies never
  }
}
