/**
 * Puts the own words of an app into a letter. An email has all of them or none: it is in Postern's words if
 * the app has none for its type and language, if a code comes first, or if a name that the words use is
 * missing, or is too long or too much like a link for a subject.
 */
import type { OwnWords, OwnWordsByType } from '../../domain/app/own-words.ts'
import type { CodePlace, EmailContent } from '../../domain/request/email-content.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import { isPlainName, type Letter, type Paragraph } from '../letter.ts'
import type { Language } from '../locales/locales.ts'
import { fill, splitNames } from '../locales/strings.ts'

type Chosen = {
  readonly type: EmailType
  readonly code: CodePlace
  readonly content: Pick<EmailContent, 'organisationName' | 'inviterName' | 'purpose'>
  readonly language: Language
}

/** @param app its name, and its words */
export function withOwnWords(
  letter: Letter,
  app: { readonly name: string; readonly words?: OwnWordsByType },
  chosen: Chosen,
): Letter {
  const own = findOwnWords(app.words, chosen)
  if (own === null) return letter
  const { content, language } = chosen
  const { isolate, quotes, withoutButton } = language.strings
  const names = toNames(content)
  const used = [own.subject, own.text, own.signOff ?? ''].flatMap(namesIn)
  const inSubject = namesIn(own.subject)
  if (used.some((name) => names[name] === undefined) || inSubject.some((name) => !isPlainName(names[name] ?? '')))
    return letter
  const quoted = Object.fromEntries(Object.entries(names).map(([name, text]) => [name, quotes.join(text)]))
  const write = (text: string): Paragraph => splitNames(text, { app: isolate(app.name) }, names)
  // The note about typed names comes after the sentence of an invitation.
  const note = used.length === 0 ? [] : letter.paragraphs.slice(1)
  return {
    ...letter,
    subject: fill(own.subject, { ...quoted, app: app.name }),
    paragraphs: [write(own.text), ...note],
    plainParagraphs: [write(withoutButton(own.text)), ...note],
    signOff: own.signOff === undefined ? null : write(own.signOff),
  }
}

function findOwnWords(words: OwnWordsByType | undefined, { code, content, language, type }: Chosen): OwnWords | null {
  if (words === undefined || content.purpose !== undefined || code === 'first') return null
  const byLanguage = words[type] ?? {}
  return byLanguage[language.language] ?? byLanguage[lenderOf(language) ?? ''] ?? null
}

/**
 * The language whose own words this one has, unless it has some: `en-US` those of `en`, but pt-PT not those
 * of pt-BR, although Postern's are mostly the same.
 */
export const lenderOf = ({ language, parent }: Language): string | null =>
  parent !== undefined && language.startsWith(`${parent}-`) ? parent : null

const toNames = ({ organisationName, inviterName }: Chosen['content']): Readonly<Record<string, string>> => ({
  ...(organisationName !== undefined && { organisation: organisationName }),
  ...(inviterName !== undefined && { inviter: inviterName }),
})

const namesIn = (text: string): ('organisation' | 'inviter')[] =>
  (['organisation', 'inviter'] as const).filter((name) => text.includes(`{${name}}`))
