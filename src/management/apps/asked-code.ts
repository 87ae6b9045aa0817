/** Where a preview or a test email has a sample code. */
import { Type } from 'typebox'
import type { AppSettings } from '../../domain/app/settings.ts'
import { type CodePlace, codePlaces } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../../domain/request/email-kinds.ts'

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
