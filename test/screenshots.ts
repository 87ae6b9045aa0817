/**
 * `npm run screenshots`: the pictures of the documents (docs/images/). `-- FOLDER` writes every page and
 * email instead, at three widths, light and dark, and a sheet of each language, for people to look at.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { emailTypes } from '../src/domain/request/email-kinds.ts'
import { escapeHtml } from '../src/templates/html.ts'
import { languageTags } from '../src/templates/locales/locales.ts'
import { openBrowser } from './support/browser.ts'
import { consoleAt, consolePages, signIn, startBusyConsole, useSession } from './support/console.ts'
import { renderPages, renderSample } from './support/language-samples.ts'
import { hashesFile, hashPictures, imagesFolder, renderConfirmPage } from './support/pictures.ts'
import { startTestService, validBody } from './support/service.ts'
import { type Scope, temporaryFolder } from './support/temporary.ts'
import { eventually } from './support/wait.ts'

const ends: (() => unknown)[] = []
const scope: Scope = { after: (end) => void ends.push(end) }
const [folder] = process.argv.slice(2)
const images = imagesFolder

const service = await startTestService(scope, {
  linksBaseUrl: 'https://links.acme.test',
  settings: {
    supportContact: 'help@acme.test',
    branding: { addressLine: 'Acme Ltd, 1 Harbour Road, Bristol' },
  },
})
const { inbox = '', links = '' } = service.urls
const emails = [
  {
    type: 'organisation_invite',
    to: 'bob@example.com',
    organisationName: 'Blue Team',
    inviterName: 'Ada Byron',
  },
  { type: 'password_reset', to: 'cy@example.com' },
  { type: 'email_verification', to: 'dan@example.com', url: 'acme://verify?token=abc' },
  { type: 'magic_link', to: 'ada@example.com' },
]
for (const email of emails) {
  await service.post(validBody(email))
  await latest(email.to)
}

type Latest = { id: string; url: string }

function latest(to: string): Promise<Latest> {
  return eventually(async () => {
    const response = await fetch(`${inbox}/api/inbox/latest?to=${to}`)
    return response.status === 200 ? ((await response.json()) as Latest) : null
  })
}

// The same letters wherever the pictures are taken.
if (!execFileSync('fc-list', { encoding: 'utf8' }).includes('Inter')) throw new Error('install Inter (fonts-inter)')
process.env.FONTCONFIG_FILE = join(temporaryFolder(scope), 'fonts.conf')
writeFileSync(
  process.env.FONTCONFIG_FILE,
  `<?xml version="1.0"?><fontconfig><include>/etc/fonts/fonts.conf</include>${['system-ui', 'sans-serif']
    .map(
      (name) => `<match><test name="family"><string>${name}</string></test>
<edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>`,
    )
    .join('')}</fontconfig>`,
)

const busy = await startBusyConsole(scope)
const at = consoleAt(busy)
const signed = await signIn(busy)
const browser = await openBrowser(scope)

type Shot = { readonly url: string; readonly file: string; readonly fullPage?: boolean }
type Options = NonNullable<Parameters<typeof browser.newContext>[0]>

async function shoot({ url, file, fullPage = false }: Shot, options: Options): Promise<void> {
  const context = await browser.newContext(options)
  if (url.startsWith(at)) await useSession(context, at, signed)
  const page = await context.newPage()
  await page.goto(url, { waitUntil: 'load' })
  await page.screenshot({ path: file, fullPage })
  await context.close()
}

/** The email and the page that its link opens, side by side on one picture, each as wide as a telephone. */
async function shootSignIn(file: string): Promise<void> {
  const { id } = await latest('ada@example.com')
  const email = await (await fetch(`${inbox}/inbox/${id}/html`)).text()
  const shown = await browser.newPage({ viewport: { width: 900, height: 640 } })
  const style = 'border:1px solid #d5d9df;border-radius:10px;width:420px;height:600px'
  const frames = [email, await renderConfirmPage()].map(
    (html) => `<iframe srcdoc="${escapeHtml(html)}" style="${style}"></iframe>`,
  )
  await shown.setContent(`<body style="margin:20px;display:flex;gap:16px;background:#fff">${frames.join('')}`)
  await shown.screenshot({ path: file })
  await shown.close()
}

/** A chart of an hour: without it, only the last minute has something. */
async function fillHour(): Promise<void> {
  const minute = Math.floor(busy.store.now() / 60_000)
  const rows = Array.from({ length: 58 }, (_, ago) => {
    const wave = Math.round(40 + 25 * Math.sin(ago / 6))
    const row = (event: 'accepted' | 'delivered' | 'deferred' | 'took:100' | 'took:250', count: number) => ({
      ...{ app: null, span: 1 as const, minute: minute - 1 - ago, event, count },
    })
    const took = ago % 9 === 0 ? 'took:250' : 'took:100'
    return [
      row('accepted', wave),
      row('delivered', wave - 2),
      row('deferred', ago % 7 === 0 ? 6 : 1),
      row(took, wave - 2),
    ]
  })
  await busy.store.addActivity(rows.flat())
}

/** The emails of a language and its pages on one picture, each as wide as a telephone. */
async function shootLanguages(folder: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 2050, height: 1800 } })
    for (const tag of languageTags) {
      const emails = emailTypes.map((type) => renderSample(tag, type, { app: 'Acme', organisationName: 'Blue Team' }))
      const [first = '', ...others] = renderPages(tag, 'Acme')
      const frame = (document: string, height: number) =>
        `<iframe srcdoc="${escapeHtml(document)}" style="border:0;width:390px;height:${height}px"></iframe>`
      const columns = [...emails.map(({ html }) => frame(html, 1100)), frame(first, 700)]
      const rest = others.slice(3).map((document) => frame(document, 620))
      await page.setContent(
        `<body style="margin:8px;display:flex;flex-wrap:wrap;gap:8px">${[...columns, ...rest].join('')}`,
      )
      await page.screenshot({ path: join(folder, `language-${tag}-${colorScheme}.png`) })
    }
    await page.close()
  }
}

if (folder === undefined) {
  mkdirSync(images, { recursive: true })
  const wide = { viewport: { width: 1180, height: 860 } }
  const { id } = await latest('ada@example.com')
  await shoot({ url: `${inbox}/inbox/${id}`, file: `${images}/inbox.png` }, { viewport: { width: 1180, height: 760 } })
  await shootSignIn(`${images}/sign-in.png`)
  await fillHour()
  await shoot({ url: at, file: `${images}/console-overview.png` }, wide)
  const failed = `${at}/emails/${await busy.find('nobody@example.com')}`
  await shoot({ url: failed, file: `${images}/console-email.png` }, { viewport: { width: 1180, height: 560 } })
  const context = await browser.newContext({ viewport: { width: 1180, height: 700 } })
  await useSession(context, at, signed)
  const page = await context.newPage()
  await page.goto(`${at}/apps/acme/links`)
  await page.fill('#test-url', 'https://staging.acme.test/auth?token=any')
  await page.click('#tester button')
  await page.waitForSelector('.verdict')
  await page
    .locator('section', { hasText: 'Would this link be sent?' })
    .screenshot({ path: `${images}/console-links.png` })
  writeFileSync(hashesFile, `${JSON.stringify(await hashPictures(), null, 2)}\n`)
} else {
  mkdirSync(folder, { recursive: true })
  const pages: [string, string][] = [['inbox', `${inbox}/inbox`]]
  for (const { type, to } of emails) {
    const { id, url } = await latest(to)
    pages.push([`inbox-${type}`, `${inbox}/inbox/${id}`], [`email-${type}`, `${inbox}/inbox/${id}/html`])
    if (url.startsWith('https://links.acme.test')) pages.push(['hosted', url.replace('https://links.acme.test', links)])
  }
  pages.push(['hosted-unknown', `${links}/acme/nothing`])
  for (const path of [...(await consolePages(busy)), '/sign-in'])
    pages.push([`console${path.replace(/\W+/g, '-').replace(/-$/, '')}`, `${at}${path}`])
  for (const [name, url] of pages) {
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [360, 800, 1280]) {
        const file = join(folder, `${name}-${colorScheme}-${width}.png`)
        await shoot({ url, file, fullPage: true }, { colorScheme, viewport: { width, height: 900 } })
      }
    }
  }
  await shootLanguages(folder)
}
for (const end of ends.reverse()) await end()
