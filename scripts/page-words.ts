/**
 * Writes the words of the client's pages, which are those of the emails that lead to them, from
 * `src/templates/locales/`. The client's build runs it.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { pageWords } from '../client/src/page-words.ts'
import { languageTags, readLanguageFile } from '../src/templates/locales/language-files.ts'

const file = fileURLToPath(new URL('../client/src/page-words.ts', import.meta.url))

export const makePageWords = () =>
  Object.fromEntries(
    languageTags.map((tag) => {
      const { language, magicLink, emailVerification, hostedPage } = readLanguageFile(tag)
      const words = {
        direction: language.direction,
        signInTo: magicLink.heading,
        signIn: magicLink.button,
        confirmAddress: emailVerification.heading,
        confirm: emailVerification.button,
        damaged: hostedPage.unknownHeading,
        damagedAdvice: hostedPage.unknownAdvice,
      }
      return [tag, words]
    }),
  )

const isRun = process.argv[1] === fileURLToPath(import.meta.url)
if (isRun && !isDeepStrictEqual(pageWords, makePageWords())) {
  const head = '/** The words of the pages in every language; `scripts/page-words.ts` writes them. */'
  writeFileSync(file, `${head}\nexport const pageWords = ${JSON.stringify(makePageWords(), null, 2)} as const\n`)
  execFileSync('npx', ['biome', 'format', '--write', file], { stdio: 'inherit' })
}
