/** The parts of a preview or a test email that an operator chooses. */
import { Type } from 'typebox'
import type { AppSettings } from '../../domain/app/settings.ts'
import { type CodePlace, codePlaces } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../../domain/request/email-kinds.ts'
import { askedMax } from '../../templates/locales/choose-language.ts'

export const askedLocale = Type.String({
  maxLength: askedMax,
  description:
    "A tag (BCP 47) or an Accept-Language list. If Postern has none of the languages, the app's language is used.",
  examples: ['pt-BR'],
})

export const askedCode = Type.Enum([...codePlaces], {
  description:
    'Where the email has a sample code: none, beside the link, or first, as for a link whose token is the code. Beside it by default if the app allows codes.',
})

export function choosePlace(
  { allowCodes }: Pick<AppSettings, 'allowCodes'>,
  type: EmailType,
  asked: CodePlace | undefined,
): CodePlace {
  if (!emailKinds[type].takesCode) return 'none'
  return asked ?? (allowCodes ? 'beside' : 'none')
}
