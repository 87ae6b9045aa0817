/**
 * The subject, HTML and text of one email, from its app's settings and its content. Pure. Most
 * emails are rendered once for a form (`delivery/message/message-form.ts`), and the time that the link has
 * left is filled in at every attempt.
 */
import type { AppSettings } from '../../domain/app/settings.ts'
import { type CodePlace, codePlace, type EmailContent } from '../../domain/request/email-content.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import { splitCode } from '../../domain/request/one-time-code.ts'
import type { LinkTexts } from '../letter.ts'
import { languageOf } from '../locales/locales.ts'
import { renderHtml, renderText } from './layout.ts'
import { withOwnWords } from './own-words.ts'
import { writeLetter } from './write-letter.ts'

export type TemplateInput = {
  readonly app: AppSettings
  readonly type: EmailType
  readonly content: EmailContent
  readonly expiresAt: number
  /** The time that the link has left at this attempt. */
  readonly lifeLeftMs: number
}

export type Rendered = {
  readonly subject: string
  readonly html: string
  readonly text: string
  /** The tag of its language. */
  readonly language: string
}

export const renderEmail = (input: TemplateInput): Rendered =>
  renderWith(makeLinkTexts(input), { ...input, code: codePlace(input.content) })

export function makeLinkTexts({ app, content, expiresAt, lifeLeftMs }: Omit<TemplateInput, 'type'>): LinkTexts {
  const { strings } = languageOf(content.locale ?? app.locale, app.formOfAddress)
  const { code = '' } = content
  const [codeHead, codeTail] = splitCode(code)
  return {
    ...{ code, codeHead, codeTail },
    url: content.url,
    host: content.hosted === true ? new URL(content.url).host : null,
    duration: strings.duration(lifeLeftMs),
    dateTime: strings.dateTime(expiresAt),
  }
}

/** The input of an email apart from its link and code: its app, its type, and the names of an invitation. */
export type LetterInput = Pick<TemplateInput, 'app' | 'type'> & {
  readonly code: CodePlace
  readonly content: Pick<EmailContent, 'organisationName' | 'inviterName' | 'locale' | 'purpose'>
}

/** Renders with texts that are given, or with marks in their places. */
export function renderWith(texts: LinkTexts, input: LetterInput): Rendered {
  const { app, content, type, code } = input
  const chosen = languageOf(content.locale ?? app.locale, app.formOfAddress)
  const { strings, language } = chosen
  const usual = writeLetter(strings, { type, app: app.name, content, code, expiry: texts })
  const letter = withOwnWords(usual, app, { type, code, content, language: chosen })
  const frame = { letter, strings, app, language, texts }
  return { subject: letter.subject, html: renderHtml(frame), text: renderText(frame), language }
}
