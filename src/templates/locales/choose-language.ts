/**
 * Chooses one of our languages for a reader who asks for some: a tag (BCP 47), or a list of them in the form
 * of Accept-Language (RFC 9110, section 12.5.4). The look-up is that of RFC 4647, section 3.4, by language
 * and script: nobody gets letters that they cannot read.
 */
import { LruMap } from '../../domain/lru-map.ts'
import { languageTags, otherForms, readLanguageFile } from './language-files.ts'
import { languageOf } from './locales.ts'

/** Characters of what is asked for. */
export const askedMax = 500
const rangesMax = 10

/** Answers to texts that came lately. */
const chosen = new LruMap<string, { readonly tag: string | null }>(1000)

/** Reads what is otherwise read by the first email: later, a process may lack the descriptors for it. */
export function loadLanguages(): void {
  table ??= newTable()
  for (const tag of languageTags) languageOf(tag)
  for (const name of otherForms) {
    const [tag = '', form] = name.split('.')
    languageOf(tag, form)
  }
}

/** The tag of one of our languages; null if none fits, or if the text asks for nothing that can be read. */
export function chooseLanguage(asked: string): string | null {
  if (asked.length > askedMax) return null
  const known = chosen.get(asked)
  if (known !== undefined) return known.tag
  const tag = lookUp(asked)
  chosen.set(asked, { tag })
  return tag
}

function lookUp(asked: string): string | null {
  table ??= newTable()
  for (const range of parseRanges(asked)) {
    for (const key of toKeys(range)) {
      const tag = table.get(key)
      if (tag !== undefined) return tag
    }
  }
  return null
}

/** From the keys of languages to our tags. */
let table: ReadonlyMap<string, string> | undefined

function newTable(): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const variants = languageTags.filter((tag) => readLanguageFile(tag).extends !== undefined)
  for (const tag of languageTags.filter((other) => !variants.includes(other))) {
    const [, exact = '', general = ''] = toKeys(tag)
    found.set(exact, tag)
    // The file of the likeliest region answers for the bare language.
    if (!found.has(general) || toKeys(general)[1] === exact) found.set(general, tag)
  }
  // `en` and `en-US` have one likeliest region, so a variant is for those who name its region.
  for (const tag of variants) found.set(toKeys(tag)[0] ?? '', tag)
  for (const tag of languageTags)
    for (const other of readLanguageFile(tag).language.serves ?? [])
      for (const key of toKeys(other)) found.set(key, found.get(key) ?? tag)
  return found
}

/** The region as it is given, or as it is likely, or any. None for a text that is no tag. */
function toKeys(tag: string): string[] {
  try {
    const given = new Intl.Locale(tag)
    const { language, region, script } = given.maximize()
    const general = `${language}-${script}`
    return [`${general}-${given.region} as given`, `${general}-${region}`, general]
  } catch {
    return []
  }
}

/** The tags of a list, the most wanted first. */
function parseRanges(asked: string): string[] {
  return asked
    .split(',', rangesMax)
    .map((range) => {
      const [tag = '', weight = ''] = range.split(';')
      const given = /^[ \t]*q=([01](?:\.\d{0,3})?)[ \t]*$/i.exec(weight)?.[1]
      return { tag: toTag(tag), weight: given === undefined ? 1 : Number(given) }
    })
    .filter(({ tag, weight }) => weight > 0 && tag !== '' && tag !== '*' && !/^und\b/i.test(tag))
    .sort((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag)
}

/** Databases hold names of POSIX too: `de_DE.UTF-8`. */
const toTag = (text: string): string =>
  text
    .trim()
    .replace(/[.@].*$/, '')
    .replaceAll('_', '-')
