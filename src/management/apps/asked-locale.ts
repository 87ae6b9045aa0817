/** The language that an operator asks for, as a request does. */
import { Type } from 'typebox'
import { askedMax } from '../../templates/locales/choose-language.ts'

export const askedLocale = Type.String({
  maxLength: askedMax,
  description:
    'A tag (BCP 47), or a list in the form of Accept-Language. Without one that Postern has, it is the language of the app.',
  examples: ['pt-BR'],
})
