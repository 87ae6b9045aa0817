/** The link of an auth server in a real browser: its parameters arrive, and machines open nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { kratos } from '../../src/domain/auth-hooks/kratos.ts'
import { startAuthHooks } from '../support/auth-hooks.ts'
import { openBrowser } from '../support/browser.ts'
import { lacking } from '../support/installed.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')

test('email, page, button, and the auth server gets every parameter; a scanner uses nothing up', {
  skip,
}, async (t) => {
  const seen: string[] = []
  const authServer = createServer((request, response) => {
    if (request.url?.startsWith('/self-service')) {
      seen.push(`${request.method} ${request.url}`)
      // An auth server leads on to a page of the app, on another origin.
      const { port } = authServer.address() as AddressInfo
      response.writeHead(303, { location: `http://localhost:${port}/welcome` }).end()
      return
    }
    response.setHeader('content-type', 'text/html').end('<h1>verified</h1>')
  })
  authServer.listen(0, '127.0.0.1')
  await once(authServer, 'listening')
  t.after(() => authServer.close())
  const { service, connect, call } = await startAuthHooks({ after }, { settings: { allowLocalhost: true } })
  const { secret } = await connect('kratos')
  const path = '/self-service/verification?code=246813&flow=f1a7-%C3%A9'
  const url = `http://127.0.0.1:${(authServer.address() as AddressInfo).port}${path}`
  const body = { ...kratos.sample('verification_code_valid'), to: 'link@example.com', url }
  assert.equal((await call('kratos', secret, body)).text, '{}')
  const email = await eventually(async () => {
    const answer = await fetch(`${service.urls.inbox}/api/inbox/latest?to=link@example.com`)
    return answer.ok ? ((await answer.json()) as { url: string; html: string }) : null
  })
  assert.ok(email.html.includes(email.url.replaceAll('&', '&amp;')))
  const page = await (await openBrowser(t)).newPage()
  const shown = email.url.replace('https://links.acme.test', service.urls.links ?? '')
  for (const header of ['prefetch', ''])
    for (const method of ['HEAD', 'GET']) {
      const answer = await fetch(shown, { method, headers: header === '' ? {} : { 'sec-purpose': header } })
      assert.equal(answer.status, 200)
    }
  await page.goto(shown, { waitUntil: 'networkidle' })
  for (const anchor of await page.locator('a').all()) {
    const href = (await anchor.getAttribute('href')) ?? ''
    assert.doesNotMatch(href, /246813/)
  }
  assert.deepEqual(seen, [], 'showing the page and running its scripts opens nothing')
  await page.click('button')
  await page.waitForSelector('text=verified')
  assert.deepEqual(seen, [`GET ${path}`])
})
