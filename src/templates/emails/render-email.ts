/**
 * The subject, HTML and text of one email, from its app's settings and its content. Pure. Most
 * emails are rendered once for a form (`delivery/message/message-form.ts`), and the time that the link has
 * left is filled in at every attempt.
 */
import type { AppSettings } from '../../domain/app/settings.ts'
import type { EmailContent } from '../../domain/delivery/email-content.ts'
import type { EmailType } from '../../domain/request/email-request.ts'
import { findLanguage } from '../locales/locales.ts'
import { emailVerification } from './email-verification.ts'
import { renderHtml, renderText } from './layout.ts'
import type { Expiry, Letter } from './letter.ts'
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

/** The texts that differ between two emails of the same app, type and language, except names. */
export type LinkTexts = Expiry & {
  readonly url: string
  /** The host of a hosted link, shown so that people can recognise it; null for a link of the app's own. */
  readonly host: string | null
}

export type Rendered = { readonly subject: string; readonly html: string; readonly text: string }

export const renderEmail = (input: TemplateInput): Rendered => renderWith(makeLinkTexts(input), input)

export function makeLinkTexts({
  app,
  content,
  expiresAt,
  lifeLeftMs,
}: Omit<TemplateInput, 'type'>): LinkTexts {
  const { strings } = findLanguage(app.locale)
  return {
    url: content.url,
    host: content.hosted === true ? new URL(content.url).host : null,
    duration: strings.duration(lifeLeftMs),
    dateTime: strings.dateTime(expiresAt),
  }
}

/** The input of an email apart from its link: its app, its type, and the names of an invitation. */
export type LetterInput = Pick<TemplateInput, 'app' | 'type'> & {
  readonly content: Pick<EmailContent, 'organisationName' | 'inviterName'>
}

/** Renders with texts that are given, or with marks in their places. */
export function renderWith(texts: LinkTexts, input: LetterInput): Rendered {
  const { app } = input
  const { strings, language } = findLanguage(app.locale)
  const letter = writeLetter(input, { strings, app, expiry: texts })
  const frame = { letter, strings, app, language, url: texts.url, host: texts.host }
  return { subject: letter.subject, html: renderHtml(frame), text: renderText(frame) }
}

function writeLetter(input: LetterInput, context: LetterContext): Letter {
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
