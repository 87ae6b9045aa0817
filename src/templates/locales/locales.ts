/** The languages that emails and hosted pages can be written in. */
import { en } from './en.ts'
import type { Strings } from './strings.ts'

export const locales: Readonly<Record<string, Strings>> = { en }

/** The texts of a language, and its tag for `lang` attributes. */
export type Language = { readonly strings: Strings; readonly language: string }

/** English if the locale is unknown. */
export function findLanguage(locale: string): Language {
  const strings = locales[locale]
  return strings === undefined ? { strings: en, language: 'en' } : { strings, language: locale }
}
