/** The console at a public address, over https behind a proxy: its names, and the cookies that it sets. */
import assert from 'node:assert/strict'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { after, test } from 'node:test'
import { cookieOf, newCode, signIn } from '../support/console.ts'
import { client, startOpenIdProvider } from '../support/openid-provider.ts'
import { startTestService } from '../support/service.ts'

const consoleUrl = 'https://postern.example.com'
const host = 'postern.example.com'
const { issuer } = await startOpenIdProvider({ after }, `${consoleUrl}/sign-in/oidc/callback`)
const service = await startTestService(
  { after },
  {
    isDev: false,
    roles: new Set(['api', 'console'] as const),
    ...{ consoleUrl, consoleIsLocal: false },
    oidc: { issuer, clientId: client.id, clientSecret: client.secret, claim: 'groups', groups: [] },
  },
)

/** `fetch` does not send a Host of its own. */
const ask = (
  path: string,
  headers: Record<string, string> = {},
  { method = 'GET', body = '' } = {},
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(service.urls.console ?? '')
    const sent = { accept: 'text/html', host, ...headers }
    const asked = httpRequest({ hostname, port, path, method, headers: sent }, (response) => {
      response.resume()
      resolve(response)
    })
    asked.on('error', reject)
    asked.end(body)
  })

test('it answers under its own name alone, and browsers keep to https', async () => {
  const cookie = `__Host-${cookieOf(await signIn(service))}`
  const own = await ask('/', { cookie })
  assert.equal(own.statusCode, 200)
  assert.equal(own.headers['strict-transport-security'], 'max-age=31536000')
  for (const other of ['localhost', 'postern.localhost', '127.0.0.1', 'evil.test'])
    assert.equal((await ask('/', { cookie, host: other })).statusCode, 403, other)
  assert.equal((await ask('/', { cookie: cookie.replace('__Host-', '') })).statusCode, 303)
})

test('its cookies are sent over https alone, and no other host of the domain can set them', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: consoleUrl }
  const body = `code=${await newCode(service)}`
  const signed = await ask('/sign-in', headers, { method: 'POST', body })
  assert.equal(signed.statusCode, 303)
  assert.match(
    String(signed.headers['set-cookie']),
    /^__Host-postern=pss_\w{49}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure$/,
  )
  const left = await ask('/sign-in/oidc')
  assert.equal(left.statusCode, 303)
  assert.match(String(left.headers['set-cookie']), /^__Host-postern-oidc=[\w-]+; .*; Secure$/)
})
