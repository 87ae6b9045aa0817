/** Software that only speaks SMTP, with the settings that Postern prints, from a form to a new password. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
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

const skip = lacking('django', 'python3', 'chromium')

test('Django: a person asks for a reset, and the link of the email lets them choose a password', {
  skip,
}, async (t) => {
  const relay = await startSmtpServer({ after })
  const sitePort = await freePort()
  const { connect, service } = await startSubmission(t, {
    relays: [relayTo(relay.port)],
    submission: { address: { host: '127.0.0.1', port: 0 }, tls },
    settings: { allowLocalhost: true },
  })
  const secret = await connect('django')
  const url = (service.urls.submission ?? '').replace('127.0.0.1', 'localhost')
  const [step] = findSystem('django')?.setUp({ url, slug: 'acme', from: 'auth@acme.test', secret }) ?? []
  const site = spawn(toolPath('python3'), [path('django/site.py')], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      EMAIL_SETTINGS: step?.block ?? '',
      SITE_FOLDER: temporaryFolder(t),
      SITE_PORT: String(sitePort),
      SSL_CERT_FILE: tls.certFile,
    },
  })
  atEnd(t, () => void site.kill())
  const home = `http://localhost:${sitePort}/accounts`
  await eventually(async () => (await fetch(`${home}/login/`).catch(() => null))?.ok, 60_000)
  const page = await (await openBrowser(t)).newPage()
  await page.goto(`${home}/password_reset/`)
  await page.fill('input[name=email]', 'ada@example.com')
  await page.click('button')
  await page.waitForSelector('text=Sent')
  const { raw } = await eventually(() => relay.received[0])
  const flat = raw.replaceAll('=\r\n', '').replaceAll('=3D', '=')
  assert.doesNotMatch(flat, /Somebody asked/)
  const link = /https:\/\/links\.acme\.test\/acme\/go\?token=[\w.~-]+/.exec(flat)?.[0] ?? ''
  await page.goto(link.replace('https://links.acme.test', service.urls.links ?? ''))
  await page.click('button')
  await page.fill('input[name=new_password1]', 'a long new one')
  await page.fill('input[name=new_password2]', 'a long new one')
  await page.click('button')
  await page.waitForSelector('text=Changed')
  await page.goto(`${home}/login/`)
  await page.fill('input[name=username]', 'ada')
  await page.fill('input[name=password]', 'a long new one')
  await page.click('button')
  await page.waitForSelector('text=Hello ada')
})
