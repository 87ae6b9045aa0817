/** The languages that emails and hosted pages can be written in, each read at its first use. */
import { languageTags, otherForms, readLanguageFile } from './language-files.ts'
import { makeStrings, type Strings } from './strings.ts'

export { languageTags }

/** The texts of a language, its tag for `lang` attributes, and the tag of the language that it varies. */
export type Language = { readonly strings: Strings; readonly language: string; readonly parent?: string | undefined }

const english = 'en'
const languages = new Map<string, Language>()

const ownNames = new Map<string, string>()
const readers = new Map<string, readonly string[]>()

/** A language in its own words and in English: `Deutsch · German`. */
export function nameLanguage(tag: string): string {
  const name = (language: string) => new Intl.DisplayNames(language, { type: 'language' }).of(tag) ?? tag
  const known = ownNames.get(tag) ?? [...new Set([name(tag), name(english)])].join(' · ')
  ownNames.set(tag, known)
  return known
}

/** The native speakers who have read a language. */
export function readBy(tag: string): readonly string[] {
  const names = readers.get(tag) ?? readLanguageFile(tag).language.readBy
  readers.set(tag, names)
  return names
}

/**
 * English if the tag is none of ours.
 * @param form the form of address; the usual one if the language has no other
 */
export function languageOf(tag: string, form?: string): Language {
  const name = form === undefined ? tag : `${tag}.${form}`
  const known = languages.get(name)
  if (known !== undefined) return known
  if (tag !== english && !languageTags.includes(tag)) return languageOf(english)
  if (form !== undefined && !otherForms.includes(name)) return languageOf(tag)
  const file = readLanguageFile(tag, form)
  const language = { language: tag, parent: file.extends, strings: makeStrings(tag, file) }
  languages.set(name, language)
  return language
}
