/**
 * `npm run screenshots`: the picture of the README (docs/images/inbox.png), the inbox beside an email.
 * `-- FOLDER` writes every page and email instead, at phone and desktop width, light and dark.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openBrowser } from './support/browser.ts'
import { startTestService, validBody } from './support/service.ts'
import type { Scope } from './support/temporary.ts'
import { eventually } from './support/wait.ts'

const ends: (() => unknown)[] = []
const scope: Scope = { after: (end) => void ends.push(end) }
const [folder] = process.argv.slice(2)

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

const browser = await openBrowser(scope)

async function shoot(
  url: string,
  file: string,
  options: Parameters<typeof browser.newPage>[0],
): Promise<void> {
  const page = await browser.newPage(options)
  await page.goto(url)
  await page.waitForLoadState('load')
  await page.screenshot({ path: file })
  await page.close()
}

/** Two pages side by side, on one picture. */
async function shootPair(file: string): Promise<void> {
  const { id } = await latest('ada@example.com')
  const page = await browser.newPage({ viewport: { width: 1180, height: 620 } })
  const shot = async (url: string, width: number) => {
    const inner = await browser.newPage({ viewport: { width, height: 580 } })
    await inner.goto(url)
    const image = await inner.screenshot()
    await inner.close()
    return `data:image/png;base64,${image.toString('base64')}`
  }
  const [list, email] = [await shot(inbox, 520), await shot(`${inbox}/email/${id}/html`, 600)]
  const picture = (src: string) => `<img src="${src}" style="border:1px solid #d5d9df;border-radius:10px">`
  await page.setContent(
    `<body style="margin:20px;display:flex;gap:20px;background:#fff">${picture(list)}${picture(email)}`,
  )
  await page.screenshot({ path: file })
  await page.close()
}

if (folder === undefined) {
  mkdirSync('docs/images', { recursive: true })
  await shootPair('docs/images/inbox.png')
} else {
  mkdirSync(folder, { recursive: true })
  const pages: [string, string][] = [['inbox', inbox]]
  for (const { type, to } of emails) {
    const { id, url } = await latest(to)
    pages.push([`inbox-${type}`, `${inbox}/email/${id}`], [`email-${type}`, `${inbox}/email/${id}/html`])
    if (url.startsWith('https://links.acme.test'))
      pages.push(['hosted', url.replace('https://links.acme.test', links)])
  }
  pages.push(['hosted-unknown', `${links}/acme/nothing`])
  for (const [name, url] of pages) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await shoot(url, join(folder, `${name}-${colorScheme}-360.png`), {
        colorScheme,
        viewport: { width: 360, height: 740 },
      })
      await shoot(url, join(folder, `${name}-${colorScheme}-1280.png`), {
        colorScheme,
        viewport: { width: 1280, height: 900 },
      })
    }
  }
}
for (const end of ends) await end()
