/** Software that only speaks SMTP, with the settings that Postern prints, from a form to a new password. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { openBrowser } from '../support/browser.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { freePort } from '../support/ports.ts'
import { relayTo } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { startSubmission } from '../support/submission.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const tls = {
  certFile: path('../support/tls/localhost.cert.pem'),
  keyFile: path('../support/tls/localhost.key.pem'),
}
const password = 'a long new one, of 2026'

type Program = {
  readonly system: string
  readonly command: readonly [file: string, ...args: string[]]
  /** Where it answers once it runs. */
  readonly login: string
  /** Asks for a reset for ada@example.com. */
  readonly ask: (page: Page, origin: string) => Promise<unknown>
  /** Chooses the password on the page that the link opens, and logs in with it. */
  readonly choose: (page: Page, origin: string) => Promise<unknown>
}

async function resetPassword(t: TestContext, { system, command: [file, ...args], login, ask, choose }: Program) {
  const relay = await startSmtpServer(t)
  const sitePort = await freePort()
  const { connect, service } = await startSubmission(t, {
    relays: [relayTo(relay.port)],
    submission: { address: { host: '127.0.0.1', port: 0 }, tls },
    settings: { allowLocalhost: true },
  })
  const secret = await connect(system)
  const url = (service.urls.submission ?? '').replace('127.0.0.1', 'localhost')
  const [step] = findSystem(system)?.setUp({ url, slug: 'acme', from: 'auth@acme.test', secret }) ?? []
  const site = spawn(file, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      EMAIL_SETTINGS: step?.block ?? '',
      SITE_FOLDER: temporaryFolder(t),
      SITE_PORT: String(sitePort),
      SSL_CERT_FILE: tls.certFile,
    },
  })
  const ended = new Promise((resolve) => site.once('exit', resolve))
  atEnd(t, async () => {
    site.kill()
    await ended
  })
  const origin = `http://localhost:${sitePort}`
  await eventually(async () => (await fetch(`${origin}${login}`).catch(() => null))?.ok, 60_000)
  const page = await (await openBrowser(t)).newPage()
  await ask(page, origin)
  const { raw } = await eventually(() => relay.received[0])
  const flat = raw.replaceAll('=\r\n', '').replaceAll('=3D', '=')
  assert.doesNotMatch(flat, /Some(body|one) (asked|has requested)/, 'the text of the program')
  const link = /https:\/\/links\.acme\.test\/acme\/go\?token=[\w.~-]+/.exec(flat)?.[0] ?? ''
  await page.goto(link.replace('https://links.acme.test', service.urls.links ?? ''))
  await page.click('button')
  await choose(page, origin)
}

const django: Program = {
  system: 'django',
  command: [toolPath('python3'), path('django/site.py')],
  login: '/accounts/login/',
  async ask(page, origin) {
    await page.goto(`${origin}/accounts/password_reset/`)
    await page.fill('input[name=email]', 'ada@example.com')
    await page.click('button')
    await page.waitForSelector('text=Sent')
  },
  async choose(page, origin) {
    await page.fill('input[name=new_password1]', password)
    await page.fill('input[name=new_password2]', password)
    await page.click('button')
    await page.waitForSelector('text=Changed')
    await page.goto(`${origin}/accounts/login/`)
    await page.fill('input[name=username]', 'ada')
    await page.fill('input[name=password]', password)
    await page.click('button')
    await page.waitForSelector('text=Hello ada')
  },
}

const wordpress: Program = {
  system: 'wordpress',
  command: [path('wordpress/site.sh')],
  login: '/wp-login.php',
  async ask(page, origin) {
    await page.goto(`${origin}/wp-login.php?action=lostpassword`)
    await page.fill('#user_login', 'ada')
    await page.click('#wp-submit')
    await page.waitForSelector('text=Check your email')
  },
  async choose(page, origin) {
    // Its script suggests one first.
    await page.waitForSelector('#pass1.strong')
    await page.fill('#pass1', password)
    await page.click('#wp-submit')
    await page.waitForSelector('text=Your password has been reset')
    await page.goto(`${origin}/wp-login.php`)
    await page.fill('#user_login', 'ada')
    await page.fill('#user_pass', password)
    await page.click('#wp-submit')
    await page.waitForSelector('text=Howdy, ada')
  },
}

const title = 'a person asks for a reset, and the link of the email lets them choose a password'
test(`Django: ${title}`, { skip: lacking('django', 'python3', 'chromium') }, (t) => resetPassword(t, django))
test(`WordPress: ${title}`, { skip: lacking('wordpress', 'mariadb', 'php', 'chromium') }, (t) =>
  resetPassword(t, wordpress),
)
