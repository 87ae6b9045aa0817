/**
 * One email's subject, HTML and text, from its app's settings and its content. Pure, and done
 * anew at every attempt, so that the time left is always the time left.
 */
import type { AppSettings } from '../../domain/app/app.ts'
import type { EmailContent } from '../../domain/delivery/outcome.ts'
import type { EmailType } from '../../domain/request/email-request.ts'
import { en } from '../locales/en.ts'
import type { Strings } from '../locales/strings.ts'
import { emailVerification } from './email-verification.ts'
import { renderHtml, renderText } from './layout.ts'
import type { Expiry, Letter } from './letter.ts'
import { magicLink } from './magic-link.ts'
import { organisationInvite } from './organisation-invite.ts'
import { passwordReset } from './password-reset.ts'

export const locales: Readonly<Record<string, Strings>> = { en }

/** The words of a language, and its tag. */
export type Language = { readonly strings: Strings; readonly language: string }

/** English where the locale is unknown. */
export function languageOf(locale: string): Language {
  const strings = locales[locale]
  return strings === undefined ? { strings: en, language: 'en' } : { strings, language: locale }
}

export type LetterContext = { readonly strings: Strings; readonly app: AppSettings; readonly expiry: Expiry }

export type TemplateInput = {
  readonly app: AppSettings
  readonly type: EmailType
  readonly content: EmailContent
  readonly expiresAt: number
  /** What is left of the link's life at this attempt. */
  readonly lifeLeftMs: number
}

export type Rendered = { readonly subject: string; readonly html: string; readonly text: string }

export function renderTemplate(input: TemplateInput): Rendered {
  const { app, content } = input
  const { strings, language } = languageOf(app.locale)
  const expiry = { duration: strings.duration(input.lifeLeftMs), moment: strings.moment(input.expiresAt) }
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
