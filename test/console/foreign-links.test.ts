/** A link on another site prepares nothing on a page of the console. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, test } from 'node:test'
import { cookieOf, newVisitor, signIn, signInMany, startBusyConsole } from '../support/console.ts'

const service = await startBusyConsole({ after })
const admin = await signIn(service)
const admins = await signInMany(service)
const base = new URL(service.urls.console ?? '')

test('a page that another site opens fills no form in and asks nothing; one from the console does', async () => {
  const visitor = newVisitor(service, admins)
  const elsewhere: readonly Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
  ]
  const texts: readonly (readonly [path: string, given: string])[] = [
    ['/apps/acme/look?supportContact=https://evil.example/help&type=magic_link', 'evil.example/help'],
    ['/apps/acme/look?logoUrl=https://evil.example/x.png', 'evil.example/x.png'],
    ['/apps/acme/look/email?logoUrl=https://evil.example/x.png', 'evil.example/x.png'],
    ['/apps/acme/settings?confirm=disable', 'Disable the app'],
    ['/suppressions?app=acme&confirm=clear', 'id="confirm"'],
    ['/emails?confirm=retry', 'id="confirm"'],
    ['/?done=key_revoked', 'The key was revoked'],
  ]
  for (const [path, given] of texts) {
    for (const headers of elsewhere) {
      const page = await (await visitor.get(path, headers)).text()
      assert.ok(!page.includes(given), `${path} ${JSON.stringify(headers)}`)
    }
    if (/look|done|disable/.test(path)) assert.ok((await (await visitor.get(path)).text()).includes(given), path)
  }
  const filtered = await (await visitor.get('/emails?app=shop', elsewhere[0])).text()
  assert.match(filtered, /<option value="shop" selected/, 'what only chooses the rows of a list still does')
})

test('without Sec-Fetch headers the Referer says which page led here', async () => {
  const path = '/apps/acme/settings?confirm=disable'
  const read = (headers: Record<string, string>) =>
    new Promise<string>((resolve, reject) => {
      const { host, hostname, port } = base
      const sent = { accept: 'text/html', cookie: cookieOf(admin), host, ...headers }
      httpRequest({ hostname, port, path, headers: sent }, async (response) => {
        resolve(Buffer.concat(await response.toArray()).toString('utf8'))
      })
        .on('error', reject)
        .end()
    })
  assert.match(await read({ referer: `${base.origin}/apps/acme/settings` }), /Disable the app/)
  for (const referer of ['https://evil.example/', `${base.origin}.evil.example/`, 'no address'])
    assert.doesNotMatch(await read({ referer }), /Disable the app/, referer)
  assert.doesNotMatch(await read({}), /Disable the app/)
})
