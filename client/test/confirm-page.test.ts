/** The page with a button in a real browser: its Origin, and no token in a Referer. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { openBrowser } from '../../test/support/browser.ts'
import { lacking } from '../../test/support/installed.ts'
import { confirm } from '../src/auth-js.ts'

test('its form carries a true Origin, and nobody learns the token from a Referer', {
  skip: lacking('chromium'),
}, async () => {
  const seen: { method: string; url: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer(async ({ method = '', url = '', headers }, response) => {
    seen.push({ method, url, headers })
    if (!url.startsWith('/confirm')) return void response.end('there')
    const answer = confirm(new Request(`http://localhost${url}`, { method }))
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const page = await (await openBrowser({ after })).newPage()
  const rest = Buffer.from('/api/auth/callback/postern?email=a').toString('base64url')
  await page.goto(`${origin}/confirm?token=canary~${rest}`)
  await page.getByRole('button').click()
  await page.getByText('there').waitFor()
  const posted = seen.find(({ method }) => method === 'POST')
  assert.equal(posted?.headers.origin, origin)
  assert.ok(seen.some(({ url }) => url === '/api/auth/callback/postern?email=a&token=canary'))
  const visits = seen.filter(({ url }) => !url.startsWith('/favicon'))
  assert.equal(visits.length, 3)
  for (const { headers } of visits) assert.doesNotMatch(headers.referer ?? '', /canary/)
})
