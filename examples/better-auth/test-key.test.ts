/** The example against a service in production, by a test key: its emails are read, and reach no relay. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import { Postern } from '@postern/client'
import { DevInbox } from '@postern/client/testing'
import { openBrowser } from '../../test/support/browser.ts'
import { lacking } from '../../test/support/installed.ts'
import { ask, newManagementToken } from '../../test/support/management.ts'
import { relayTo, startTestService } from '../../test/support/service.ts'
import { startSmtpServer } from '../../test/support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../../test/support/temporary.ts'
import { newApp } from './app.ts'
import { startAuth } from './auth.ts'

test('sign-up in a browser, with the email of a test key', { skip: lacking('chromium') }, async () => {
  const scope: Scope = { after }
  const relay = await startSmtpServer(scope)
  const service = await startTestService(scope, {
    relays: [relayTo(relay.port)],
    settings: { allowedUrls: [], allowLocalhost: true },
  })
  const { slug } = service.app
  const admin = await newManagementToken(service)
  const made = await ask(service, `POST /v1/apps/${slug}/keys`, { token: admin, body: { test: true } })
  const web = createServer()
  await new Promise<void>((resolve) => web.listen(0, 'localhost', resolve))
  atEnd(scope, () => {
    web.close()
    web.closeAllConnections()
  })
  const origin = `http://localhost:${(web.address() as AddressInfo).port}`
  const auth = await startAuth({
    origin,
    databasePath: join(temporaryFolder(scope), 'example.db'),
    secret: 'a secret of thirty-two characters',
    postern: new Postern({ deliveryKey: made.body.key, baseUrl: service.urls.api ?? '' }),
  })
  web.on('request', getRequestListener(newApp(auth, '').fetch))
  const token = await newManagementToken(service, 'operator', [service.app.id])
  const inbox = new DevInbox({ url: service.urls.console ?? '', app: slug, token })

  const page = await (await (await openBrowser(scope)).newContext()).newPage()
  const to = 'delivered+ada@postern.test'
  await page.goto(origin)
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Sign up', exact: true }) })
  for (const [name, value] of Object.entries({ name: 'Ada', email: to, password: 'correct horse' }))
    await form.locator(`[name=${name}]`).fill(value)
  await form.getByRole('button').click()
  await page.getByText(`${to} is not verified yet.`).waitFor()
  await page.goto((await inbox.next(to, 'email_verification', 15_000)).url)
  await page.getByRole('button', { name: 'Confirm address' }).click()
  await page.getByText(`${to} is verified.`).waitFor()
  assert.equal(relay.received.length, 0)
})
