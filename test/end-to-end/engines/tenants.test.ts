/** An app's own people name only what is the app's: its domains, its links, its status. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AppSettings } from '../../../src/domain/app/settings.ts'
import type { AppId } from '../../../src/domain/id.ts'
import { startNameServer } from '../../support/dns-server.ts'
import { adminTokens, ask, type ManagementAnswer, newManagementToken } from '../../support/management.ts'
import { newSender, startTestService, testSettings } from '../../support/service.ts'

const resolver = await startNameServer({ after }, 'absence')
const service = await startTestService(
  { after },
  {
    roles: new Set(['api', 'console']),
    linksBaseUrl: 'https://links.postern.dev/l',
    dnsServers: [resolver.server],
  },
)
await newSender(service, 'shop', { ...testSettings, from: { name: 'Shop', address: 'auth@shop.test' } })
const serviceAdmin = await newManagementToken(service)
const anyAdmin = await adminTokens(service)
let serial = 0

async function newApp(settings: Partial<AppSettings> = {}) {
  const slug = `own${serial++}`
  const { app } = await newSender(service, slug, { ...testSettings, ...settings })
  const [admin, operator] = await Promise.all([
    newManagementToken(service, 'admin', [app.id]),
    newManagementToken(service, 'operator', [app.id]),
  ])
  const patch = (body: unknown, token: string) => ask(service, `PATCH /v1/apps/${slug}`, { token, body })
  return { admin, id: app.id as AppId, operator, patch, slug }
}

const codesOf = ({ body, status }: ManagementAnswer): string =>
  status < 300
    ? 'ok'
    : [body.error.code, ...(body.error.issues ?? []).map((issue: { code: string }) => issue.code)].join(' ')

test('an admin of one app chooses addresses inside its sender domains, and in no other’s', async () => {
  const { admin, patch } = await newApp()
  const from = (address: string) => ({ from: { name: 'Shop', address } })
  assert.equal(codesOf(await patch(from('login@acme.test'), admin)), 'ok')
  for (const address of ['auth@shop.test', 'a@login.acme.test', 'a@test.acme', 'a@ACME.test.shop.test'])
    assert.equal(codesOf(await patch(from(address), admin)), 'invalid_request foreign_domain', address)
  const envelope = await patch({ envelopeFrom: 'bounce+x@shop.test' }, admin)
  assert.equal(codesOf(envelope), 'invalid_request foreign_domain')
  assert.match(envelope.body.error.issues[0].message, /shop\.test is not a sender domain of this app\. .*domain prove/)
  const both = await patch({ ...from('auth@shop.test'), senderDomains: ['shop.test'] }, admin)
  assert.equal(codesOf(both), 'not_permitted needs_service_admin')
})

test('an admin of the whole service gives a domain by setting an address, or by its name', async () => {
  const { admin, patch } = await newApp()
  const given = await patch({ from: { name: 'A', address: 'a@new.test' } }, serviceAdmin)
  assert.deepEqual(given.body.senderDomains, ['acme.test', 'new.test'])
  assert.equal(codesOf(await patch({ from: { name: 'A', address: 'a@acme.test' } }, admin)), 'ok')
  const taken = await patch({ senderDomains: ['new.test'] }, serviceAdmin)
  assert.equal(codesOf(taken), 'invalid_request foreign_domain', 'the sender still uses it')
  const moved = await patch({ senderDomains: ['new.test'], from: { name: 'A', address: 'b@new.test' } }, serviceAdmin)
  assert.deepEqual(moved.body.senderDomains, ['new.test'])
})

test('a replacement that names no sender domains keeps those that the app has', async () => {
  const { patch, slug } = await newApp()
  await patch({ senderDomains: ['acme.test', 'proved.test'] }, serviceAdmin)
  const body = { name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } }
  const put = await ask(service, `PUT /v1/apps/${slug}`, { token: serviceAdmin, body })
  assert.deepEqual(put.body.senderDomains, ['acme.test', 'proved.test'])
})

test('only an admin of the whole service puts links at a link domain', async () => {
  const { admin, patch } = await newApp({ linkDomain: 'links.shop.test' })
  const use = { useLinkDomain: true }
  assert.equal(codesOf(await patch(use, admin)), 'not_permitted needs_service_admin')
  assert.equal(codesOf(await patch(use, serviceAdmin)), 'ok')
})

test('an app that an earlier version stored lacks new settings, and its people change the others', async () => {
  const { useLinkDomain: _, ...old } = testSettings
  const { operator, patch, slug } = await newApp()
  const { app } = await newSender(service, `old-${slug}`, old as AppSettings)
  const oldOperator = await newManagementToken(service, 'operator', [app.id])
  const path = `/v1/apps/old-${slug}`
  const changed = await ask(service, `PATCH ${path}`, { token: oldOperator, body: { replyTo: 'help@acme.test' } })
  assert.equal(codesOf(changed), 'ok', changed.text)
  assert.equal((await ask(service, `GET ${path}`, { token: serviceAdmin })).body.useLinkDomain, false)
  assert.equal(codesOf(await patch({ replyTo: 'help@acme.test' }, operator)), 'ok')
})

test('a domain without its record is not added, and the answer says what to publish', async () => {
  const { id, operator, slug } = await newApp()
  const prove = (domain: string) =>
    ask(service, `POST /v1/apps/${slug}/domain/prove`, { token: operator, body: { domain } })
  const missing = await prove('shop.test')
  assert.equal(codesOf(missing), 'record_missing')
  assert.ok(missing.body.error.message.includes(`_postern.shop.test "postern-app=${id}"`), missing.text)
  assert.equal(codesOf(await prove('acme.test')), 'ok', 'it has this one')
  assert.equal(codesOf(await prove('co.uk')), 'invalid_request public_suffix')
  assert.equal(codesOf(await prove('*.shop.test')), 'invalid_request malformed_domain')
})

test('schemes without a dot, links into private networks and to Postern need an admin of the whole service', async () => {
  const { admin, operator, patch } = await newApp({ appSchemes: ['acme'] })
  const reserved: readonly Partial<AppSettings>[] = [
    ...['demo', 'whatsapp', 'acme2://auth'].map((scheme) => ({ appSchemes: ['acme', scheme] })),
    ...[
      'https://192.168.1.1',
      'https://[fd00::1]/x',
      'https://10.0.0.1:8443',
      'https://router',
      'https://nas.local',
    ].map((url) => ({ allowedUrls: [url] })),
    ...['https://links.postern.dev', 'https://links.postern.dev/l/shop/*', 'https://*.postern.dev'].map((url) => ({
      allowedUrls: [url],
    })),
    { fallbackUrl: 'https://169.254.169.254/latest' },
    { newEmailUrl: 'https://169.254.169.254/latest' },
    { linkDomain: 'links.shop.test' },
  ]
  for (const body of reserved) {
    const name = JSON.stringify(body)
    for (const token of [admin, operator])
      assert.equal(codesOf(await patch(body, token)), 'not_permitted needs_service_admin', name)
    assert.equal(codesOf(await patch(body, anyAdmin())), 'ok', name)
    assert.equal(codesOf(await patch({ supersede: serial++ % 2 === 0 }, operator)), 'ok', 'other settings still change')
    const none = { fallbackUrl: null, linkDomain: null, useLinkDomain: false }
    await patch({ allowedUrls: [], appSchemes: ['acme'], ...none }, anyAdmin())
  }
  const own = {
    appSchemes: ['acme://more', 'com.acme.app'],
    allowedUrls: ['https://app.acme.test', 'https://8.8.8.8'],
  }
  assert.equal(codesOf(await patch(own, operator)), 'ok')
})

test('schemes that open or install programs are taken from nobody', async () => {
  const { patch } = await newApp()
  for (const scheme of [
    ...[
      'ms-msdt',
      'MS-Word',
      'ms-appinstaller',
      'search-ms',
      'itms-services',
      'shell',
      'vscode',
      'jar',
      'vnd.ms.radio',
    ],
    ...['microsoft-edge', 'x-apple.systempreferences', 'ssh', 'intent', 'smb', 'ldap', 'ms-x.y'],
  ]) {
    const answer = await patch({ appSchemes: [scheme] }, anyAdmin())
    assert.match(codesOf(answer), /^invalid_request (?:program|standard)_scheme$/, scheme)
  }
})

test('an app that was suspended is enabled by an admin of the whole service alone', async () => {
  const { admin, operator, patch, slug } = await newApp()
  assert.equal(codesOf(await patch({ status: 'suspended' }, admin)), 'not_permitted')
  assert.equal((await patch({ status: 'suspended' }, serviceAdmin)).body.status, 'suspended')
  for (const token of [admin, operator])
    for (const status of ['active', 'disabled', null])
      assert.equal(codesOf(await patch({ status }, token)), 'not_permitted', String(status))
  assert.equal(codesOf(await patch({ locale: 'de' }, operator)), 'ok', 'settings still change')
  assert.equal((await ask(service, `GET /v1/apps/${slug}`, { token: operator })).body.status, 'suspended')
  const body = { name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } }
  const put = await ask(service, `PUT /v1/apps/${slug}`, { token: serviceAdmin, body })
  assert.equal(put.body.status, 'suspended', 'a replacement without a status keeps it')
  const test = { token: operator, body: { to: 'a@example.com' } }
  assert.equal(codesOf(await ask(service, `POST /v1/apps/${slug}/test-email`, test)), 'test_email_refused')
  assert.equal((await patch({ status: 'active' }, serviceAdmin)).body.status, 'active')
  assert.equal((await patch({ status: 'disabled' }, operator)).body.status, 'disabled')
  assert.equal((await patch({ status: 'active' }, operator)).body.status, 'active', 'their own is theirs to undo')
})

test('changes by the people of an app that fill the audit are refused for a day; access can be taken away', async () => {
  const { id, operator: token, slug } = await newApp()
  const other = await newManagementToken(service, 'operator', [id])
  const urls = (letter: string) =>
    Array.from({ length: 8 }, (_, n) => `https://${letter}${n}.acme.test/${'x'.repeat(1800)}`)
  const patch = (body: object, by = token) => ask(service, `PATCH /v1/apps/${slug}`, { token: by, body })
  const team = await Promise.all([1, 2, 3].map(() => newManagementToken(service, 'operator', [id])))
  const key = await ask(service, `POST /v1/apps/${slug}/keys`, { token, body: {} })
  let answer = await patch({ allowedUrls: urls('a') })
  for (let n = 0; answer.status === 200 && n < 100; n++)
    answer = await patch({ allowedUrls: urls(n % 2 === 0 ? 'b' : 'a') }, team[n % team.length])
  assert.deepEqual([answer.status, answer.body.error.code], [429, 'changed_too_often'])
  const more = async (by: string) => [
    codesOf(await patch({ supersede: false }, by)),
    codesOf(await ask(service, `PATCH /v1/keys/${key.body.id}`, { token: by, body: { name: 'x' } })),
    codesOf(await ask(service, `POST /v1/apps/${slug}/keys`, { token: by, body: {} })),
    codesOf(await ask(service, `POST /v1/apps/${slug}/domain/check`, { token: by })),
  ]
  assert.deepEqual(await more(token), Array(4).fill('changed_too_often'))
  assert.deepEqual(await more(other), Array(4).fill('changed_too_often'), 'the app is full for everybody')
  assert.equal((await ask(service, `GET /v1/apps/${slug}/keys`, { token })).status, 200)
  assert.equal(
    (await ask(service, `POST /v1/apps/${slug}/preview`, { token, body: { type: 'magic_link' } })).status,
    200,
  )
  assert.ok((await ask(service, `DELETE /v1/keys/${key.body.id}`, { token })).body.revokedAt)
  assert.equal((await patch({ status: 'disabled' })).body.status, 'disabled')
  assert.equal(codesOf(await patch({ status: 'active' })), 'changed_too_often')
  const retryAll = (by: string) => ask(service, 'POST /v1/emails/retry', { token: by, body: { app: slug } })
  assert.equal(codesOf(await retryAll(token)), 'changed_too_often')
  const outsider = (await newApp()).operator
  assert.equal(codesOf(await retryAll(outsider)), 'not_found', 'others learn nothing about the app')
  const body = { name: 'Whole', from: testSettings.from }
  const put = await ask(service, `PUT /v1/apps/${slug}`, { token: serviceAdmin, body })
  assert.equal(codesOf(put), 'ok', 'an admin of the whole service is not bound')
})
