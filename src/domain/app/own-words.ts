/**
 * Own words of an app in its emails: for a type and a language, the subject, the sentence above the button
 * and a sign-off. They are plain text that no mail client turns into a link, so that the link of an email is
 * its only one.
 *
 *   {"magic_link": {"en": {"subject": "Your {app} link", "text": "Welcome.", "signOff": "Yours, {app}"}}}
 */
import { deceptive, isDeceptive } from '../controls.ts'
import { findLinkable } from '../linkable.ts'
import type { Issue } from '../parsed.ts'
import { type EmailType, emailKinds } from '../request/email-kinds.ts'

export type OwnWords = { readonly subject: string; readonly text: string; readonly signOff?: string }

/** By type of email, and by the tag of a language. */
export type OwnWordsByType = Readonly<Partial<Record<EmailType, Readonly<Record<string, OwnWords>>>>>

/** Characters. Mail clients cut a longer subject; a longer sentence is none. */
export const ownWordsMax = { subject: 100, text: 300, signOff: 100 } as const satisfies Record<keyof OwnWords, number>

/** The names that may be in braces. */
export const placeholdersOf = (type: EmailType): readonly string[] =>
  emailKinds[type].hasNames ? ['app', 'organisation', 'inviter'] : ['app']

type Facts = {
  /** The app's name. */
  readonly name: string
  /** The tags of all languages. */
  readonly locales: readonly string[]
}

export const checkOwnWords = (words: OwnWordsByType, facts: Facts): Issue[] =>
  (Object.entries(words) as [EmailType, OwnWordsByType[EmailType]][]).flatMap(([type, byLanguage]) =>
    Object.entries(byLanguage ?? {}).flatMap(([language, own]) => {
      const field = `words.${type}.${language}`
      if (!facts.locales.includes(language))
        return [issue(field, 'unknown_locale', `The language must be one of ${facts.locales.join(', ')}.`)]
      return Object.entries(own).flatMap(([part, text]) =>
        checkText(text, {
          field: `${field}.${part}`,
          type,
          max: ownWordsMax[part as keyof OwnWords],
          name: facts.name,
        }),
      )
    }),
  )

/** The type and the languages of each: `magic_link de en`. */
export const listOwnWords = (words: OwnWordsByType): string[] =>
  Object.entries(words).map(([type, byLanguage]) => [type, ...Object.keys(byLanguage ?? {})].join(' '))

/** Without types that have no words, as a merge patch may leave them, and in order; undefined for none. */
export function pruneOwnWords(words: OwnWordsByType = {}): OwnWordsByType | undefined {
  const kept = Object.entries(words).flatMap(([type, byLanguage]) => {
    const languages = Object.entries(byLanguage ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
    const ordered = languages.map(([language, { subject, text, signOff }]) => [
      language,
      { subject, text, ...(signOff !== undefined && { signOff }) },
    ])
    return ordered.length === 0 ? [] : [[type, Object.fromEntries(ordered)] as const]
  })
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

const issue = (field: string, code: string, message: string): Issue => ({ field, code, message })

type Text = { readonly field: string; readonly type: EmailType; readonly max: number; readonly name: string }

function checkText(text: string, { field, type, max, name }: Text): Issue[] {
  if (text === '' || text !== text.trim() || text.length > max || isDeceptive(text))
    return [
      issue(
        field,
        'malformed_text',
        `1 to ${max} characters on one line, without spaces at either end, and without ${deceptive}.`,
      ),
    ]
  const names = placeholdersOf(type)
  // A name beside other words can make a link with them: "acme" before ".example".
  const filled = names.reduce(
    (rest, placeholder) => rest.replace(`{${placeholder}}`, placeholder === 'app' ? standIn(name) : unknownName),
    text,
  )
  if (/[{}]/.test(filled)) {
    const known = names.map((placeholder) => `{${placeholder}}`).join(', ')
    return [
      issue(field, 'unknown_placeholder', `The placeholders are ${known}, once each; no other braces are allowed.`),
    ]
  }
  const found = findLinkable(filled)
  if (found === null) return []
  const message = `Mail clients may turn "${found}" into a link, an address or a telephone number. Leave it out, or put a space after its dot.`
  return [issue(field, 'linkable_text', message)]
}

const unknownName = 'xx'

/** A name that is linkable by itself, such as Booking.com, is in Postern's words, too. */
const standIn = (name: string): string => (findLinkable(name) === null ? name.replace(/[{}]/g, 'x') : unknownName)
