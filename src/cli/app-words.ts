/** `postern app words`: own words of an app in its emails. */
import { type OwnWords, placeholdersOf } from '../domain/app/own-words.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import { command, given, option } from './command.ts'
import { typeOption } from './options.ts'
import { record, UsageError } from './output.ts'

type WordsOptions = {
  readonly type: EmailType
  readonly locale?: string
  readonly subject?: string
  readonly text?: string
  readonly signOff?: string
  readonly remove?: boolean
}

export const wordsCommand = command({
  use: 'words <app>',
  about: 'show or change own words in one type of email and one language; an admin of the whole service changes them',
  options: [
    typeOption(),
    option('--locale <language>', "the tag of the language, such as de (default: the app's)"),
    option('--subject <text>', 'the subject'),
    option('--text <text>', 'the sentence above the button'),
    option('--sign-off <text>', 'a last line, such as "The {app} team"; an empty text removes it'),
    option('--remove', "return to Postern's words"),
  ],
  examples: [
    'postern app words acme --subject "Your link for {app}" --text "Welcome back! Press the button to sign in."',
    'postern app words acme --type password_reset --locale de --remove',
  ],
  async run({ call }, [app], { type, locale, remove = false, subject, text, signOff }: WordsOptions) {
    const params = { app }
    const shown = await call('app.show', { params })
    const language = locale ?? shown.locale
    const changes = given({ subject, text, signOff: signOff === '' ? null : signOff })
    const isChanged = Object.keys(changes).length > 0
    if (remove && isChanged) throw new UsageError('give texts or --remove, not both')
    const before = shown.words?.[type]?.[language]
    if (isChanged && before === undefined && (subject === undefined || text === undefined))
      throw new UsageError(`there are no own words for ${type} in ${language} yet: give both --subject and --text`)
    const body = { words: { [type]: { [language]: remove ? null : changes } } }
    const { words } = remove || isChanged ? await call('app.change', { params, body }) : shown
    return { type, language, words: words?.[type]?.[language] ?? null }
  },
  show: ({ language, type, words }, [app]) =>
    words === null
      ? `no own words for ${type} in ${language}; placeholders in them: ${listPlaceholders(type)}`
      : `${describe(words)}\n\nTo see the email: postern preview ${app} --type ${type} --locale ${language}`,
})

const listPlaceholders = (type: EmailType): string =>
  placeholdersOf(type)
    .map((name) => `{${name}}`)
    .join(', ')

const describe = ({ signOff, subject, text }: OwnWords): string =>
  record([
    ['subject', subject],
    ['text', text],
    ['sign-off', signOff],
  ])
