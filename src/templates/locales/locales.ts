/** The languages that emails and hosted pages can be written in, each read at its first use. */
import { languageTags, readLanguageFile } from './language-files.ts'
import { makeStrings, type Strings } from './strings.ts'

export { languageTags }

/** The texts of a language, and its tag for `lang` attributes. */
export type Language = { readonly strings: Strings; readonly language: string }

const english = 'en'
const languages = new Map<string, Language>()

/** Whether Node has the dates and durations of a language; a system's own Node may lack them. */
const hasFormats = (tag: string): boolean => Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0

const ownNames = new Map<string, string>()

/** A language in its own words and in English: `Deutsch · German`. */
export function nameLanguage(tag: string): string {
  const name = (language: string) => new Intl.DisplayNames(language, { type: 'language' }).of(tag) ?? tag
  const known = ownNames.get(tag) ?? [...new Set([name(tag), name(english)])].join(' · ')
  ownNames.set(tag, known)
  return known
}

/**
 * English as a whole if the tag is none of ours, or if Node lacks its formats: half a translation would be
 * worse.
 */
export function findLanguage(tag: string): Language {
  const known = languages.get(tag)
  if (known !== undefined) return known
  if (tag !== english && !(languageTags.includes(tag) && hasFormats(tag))) return findLanguage(english)
  const language = { language: tag, strings: makeStrings(tag, readLanguageFile(tag)) }
  languages.set(tag, language)
  return language
}
