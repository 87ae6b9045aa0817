/** `postern languages`: the languages of the emails, and which of them a request gets. */
import type { CommandSpec } from './command.ts'
import type { CliDeps } from './context.ts'
import { CommandFailed, print, table } from './output.ts'

export const languagesCommand: CommandSpec = {
  use: 'languages [locale]',
  about: 'list the languages of the emails; given the locale of a request, print the language chosen for it',
  examples: ["postern languages 'ca, es;q=0.9'"],
  act: (deps, [locale]) => (locale === undefined ? list(deps) : choose(deps, locale)),
}

// Templates are loaded by this command alone.
async function list({ output }: CliDeps): Promise<void> {
  const { languageTags, readLanguageFile } = await import('../templates/locales/language-files.ts')
  const { nameLanguage } = await import('../templates/locales/locales.ts')
  const languages = languageTags.map((tag) => {
    const { direction, readBy } = readLanguageFile(tag).language
    return { tag, name: nameLanguage(tag), direction, readBy: [...readBy] }
  })
  print(output, languages, () =>
    table(
      ['tag', 'language', 'direction', 'read by native speakers'],
      languages.map(({ tag, name, direction, readBy }) => [tag, name, direction, readBy.join(', ') || 'nobody yet']),
    ),
  )
}

async function choose({ output }: CliDeps, locale: string): Promise<void> {
  const { chooseLanguage } = await import('../templates/locales/choose-language.ts')
  const tag = chooseLanguage(locale)
  if (tag === null) throw new CommandFailed('Postern has none of these languages: the email is in the app’s language')
  print(output, { tag }, () => tag)
}
