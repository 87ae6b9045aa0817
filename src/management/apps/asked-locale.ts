/** The language that an operator asks for, as a request does. */
import { Type } from 'typebox'
import { askedMax } from '../../templates/locales/choose-language.ts'

export const askedLocale = Type.String({
  maxLength: askedMax,
  description:
    "A tag (BCP 47) or an Accept-Language list. If Postern has none of the languages, the app's language is used.",
  examples: ['pt-BR'],
})
