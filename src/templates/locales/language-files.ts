/**
 * The languages of this folder, one file of data each. Nothing else in `templates` reads files, and these are
 * the program's own text.
 */
import { readdirSync, readFileSync } from 'node:fs'

type LetterTexts = {
  readonly subject: string
  /** Shown by mail clients beside the subject. */
  readonly preheader: string
  readonly heading: string
  readonly text: string
  readonly button: string
  /** For a reader who did not ask for the email. */
  readonly ignore: string
  /** Above a one-time code. */
  readonly codeText: string
}

/** A file of this folder. Its texts hold placeholders such as `{app}`. */
export type LanguageFile = {
  /** The tag of a language with the same texts but for those here. */
  readonly extends?: string
  readonly language: {
    readonly direction: 'ltr' | 'rtl'
    readonly quotes: readonly [opening: string, closing: string]
    /** Font families that come before Helvetica, separated by commas. */
    readonly fonts?: string
    /** For a script that has spaces and would be broken inside words; `break-word` unless set. */
    readonly wordBreak?: 'keep-all'
    /** The tag by which `Intl` formats dates and durations, if another. */
    readonly formats?: string
    /** `h12` for a.m. and p.m.; `h23` unless set. */
    readonly hourCycle?: 'h12' | 'h23'
    /** Replaces words that `Intl` uses in durations and dates. */
    readonly wording?: Readonly<Record<string, string>>
    /** Replaces the words about the button in the text part. */
    readonly withoutButton: Readonly<Record<string, string>>
    /** Other tags that this language serves, such as `yue` for Chinese in traditional characters. */
    readonly serves?: readonly string[]
    /** For translators: the form of address, terms and traps. */
    readonly conventions: string
    /** The native speakers who have read the whole file: a name, and the date. */
    readonly readBy: readonly string[]
  }
  readonly magicLink: LetterTexts & { readonly textWithCode: string }
  readonly emailVerification: LetterTexts
  readonly passwordReset: LetterTexts
  readonly organisationInvite: Omit<LetterTexts, 'codeText'> &
    Readonly<Record<'subjectWithoutName' | 'textWithInviter' | 'typedNames', string>>
  /** To the address that an account has: somebody asked to use another one. */
  readonly addressChange: LetterTexts
  /** A code alone, before a change in an account. */
  readonly identity: Omit<LetterTexts, 'text' | 'button'>
  readonly code: Readonly<Record<'beside' | 'expires' | 'expiresWithLink' | 'neverAsk', string>>
  readonly hostedPage: Readonly<
    Record<
      | 'intro'
      | 'open'
      | 'leadsTo'
      | 'opensApp'
      | 'appMissing'
      | 'fallback'
      | 'expiredHeading'
      | 'expiredAdvice'
      | 'unavailableHeading'
      | 'unavailableAdvice'
      | 'unknownHeading'
      | 'unknownAdvice',
      string
    >
  >
} & Readonly<Record<'expires' | 'lessThanMinute' | 'linkHint' | 'opens' | 'keepPrivate' | 'support', string>>

const folder = new URL('./', import.meta.url)
const ending = '.json'

/** Whether Node can write the dates and durations of a language; a system's own Node may lack some. */
const hasFormats = (tag: string): boolean => Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0

/**
 * The tags of all languages (BCP 47), which are the names of their files. Those that this Node cannot format
 * are left out: half a translation would be worse than another language.
 */
export const languageTags: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith(ending))
  .map((name) => name.slice(0, -ending.length))
  .filter(hasFormats)
  .sort()

/** `TAG.FORM` for languages with two forms of address: the texts that differ in the other form. */
export const otherForms: readonly string[] = readdirSync(new URL('forms/', folder))
  .map((name) => name.slice(0, -ending.length))
  .filter((name) => languageTags.includes(name.split('.')[0] ?? ''))

const read = (path: string) => JSON.parse(readFileSync(new URL(`${path}${ending}`, folder), 'utf8')) as LanguageFile

/**
 * A file that `extends` another has the texts that differ from it.
 * @param form `formal` or `informal`; the usual one if the language has no other
 */
export function readLanguageFile(tag: string, form = ''): LanguageFile {
  if (otherForms.includes(`${tag}.${form}`)) return extend(readLanguageFile(tag), read(`forms/${tag}.${form}`))
  const own = read(tag)
  return own.extends === undefined ? own : extend(readLanguageFile(own.extends), own)
}

function extend(base: LanguageFile, own: Partial<LanguageFile>): LanguageFile {
  const entries = Object.entries({ ...base, ...own }).map(([name, value]) => {
    const inherited = base[name as keyof LanguageFile]
    return [name, typeof value === 'object' ? { ...(inherited as object), ...value } : value]
  })
  return Object.fromEntries(entries) as LanguageFile
}
