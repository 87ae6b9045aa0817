/**
 * The pages that each picture of the documents shows, as text: the recorded pages (`test/console/recorded/`),
 * their style, the email, the page behind its link. `npm run screenshots` keeps a hash of it, and a test
 * compares the hash, so that no picture shows an older program.
 */
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { answerPage } from '../../client/src/better-auth-link.ts'
import { renderSample } from './language-samples.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(`${root}${file}`, 'utf8')

export const imagesFolder = 'docs/images'
/** Hashes by the name of the picture. */
export const hashesFile = `${imagesFolder}/shown.json`

/** The recorded sections whose path matches. */
function recorded(name: string, path: RegExp): string {
  const sections = read(`test/console/recorded/${name}.txt`).split(/^(?=# \/)/m)
  const found = sections.filter((section) => path.test(/^# (\S+)/.exec(section)?.[1] ?? ''))
  if (found.length === 0) throw new Error(`nothing is recorded for ${path}`)
  return found.join('')
}

/** The page between the email and the app, as the plugin for Better Auth answers it. */
export async function renderConfirmPage(): Promise<string> {
  const request = new Request('http://localhost:3000/api/auth/postern/magic_link?token=abc')
  return (await answerPage(request, true, 'Acme')?.text()) ?? ''
}

const email = () => renderSample('en', 'magic_link', { app: 'Acme', organisationName: 'Blue Team' }).html

const shown: Readonly<Record<string, () => string | Promise<string>>> = {
  'inbox.png': () => recorded('inbox', /^\/inbox\/em_\d+$/) + email(),
  'sign-in.png': async () => email() + (await renderConfirmPage()),
  'console-overview.png': () => recorded('admin', /^\/$/),
  'console-email.png': () => recorded('admin', /^\/emails\/em_\d+$/),
  'console-links.png': () => recorded('admin', /^\/apps\/acme\/links$/),
}

export async function hashPictures(): Promise<Record<string, string>> {
  const styles = globSync('src/web/operators/console/browser/*.css', { cwd: root }).sort().map(read).join('')
  const hashes: Record<string, string> = {}
  for (const [name, show] of Object.entries(shown))
    hashes[name] = createHash('sha256')
      .update((await show()) + styles)
      .digest('hex')
  return hashes
}
