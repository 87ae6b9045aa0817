import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId } from '../id.ts'
import { parseAuthLink } from '../request/auth-link.ts'
import { appPolicy } from './app-policy.ts'
import { parseAppSettings } from './check-settings.ts'
import { chooseHostedLink, type HostedLinkMode, isLinksBaseUrl } from './hosted-link.ts'
import { type AppSettings, defaultSettings } from './settings.ts'

const settings: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
  senderDomains: ['acme.test'],
  allowedUrls: ['https://app.acme.test'],
  appSchemes: ['acme'],
}
const base = 'https://links.acme.test'
const web = 'https://app.acme.test/auth?token=a%26b'
const app = 'acme://auth/magic?token=a%26b'

type Change = Partial<AppSettings> & { slug?: string; baseUrl?: string | null }

function choose(raw: string, { slug = 'acme', baseUrl = base, ...change }: Change = {}) {
  const policy = appPolicy({ id: 'app_x' as AppId, version: 1, slug, settings: { ...settings, ...change } })
  const link = parseAuthLink(raw, policy.schemes)
  assert.ok(link.ok)
  const choice = chooseHostedLink({ link: link.value, type: 'magic_link', policy, baseUrl })
  if (choice.kind === 'hosted') return choice.destination.href
  return choice.kind === 'direct' ? 'direct' : choice.issues.map((issue) => issue.code).join(' ')
}

const toApp = { linkDestinations: { magic_link: 'acme://auth/magic' } }
const table: [HostedLinkMode, string, Change, string][] = [
  ['auto', web, {}, 'direct'],
  ['auto', app, {}, app],
  ['auto', app, { baseUrl: null }, 'direct'],
  ['auto', web, toApp, app],
  ['auto', web, { ...toApp, baseUrl: null }, 'direct'],
  ['off', app, {}, 'direct'],
  ['off', web, toApp, 'direct'],
  ['app-schemes', web, {}, 'direct'],
  ['app-schemes', web, { baseUrl: null }, 'direct'],
  ['app-schemes', app, {}, app],
  ['app-schemes', app, { baseUrl: null }, 'base_url_missing'],
  ['always', web, {}, web],
  ['always', web, { baseUrl: null }, 'base_url_missing'],
  ['always', web, { baseUrl: 'http://links.acme.test' }, 'base_url_insecure'],
  ['always', web, { baseUrl: 'http://127.0.0.1:4021' }, web],
  ['always', web, { linkDestinations: { magic_link: 'https://gone.acme.test/x' } }, 'destination_invalid'],
  ['always', web, { linkDestinations: { magic_link: 'other://x' } }, 'destination_invalid'],
  ['always', web, { linkDestinations: { magic_link: 'https://app.acme.test/x?y=z' } }, 'destination_invalid'],
  ['always', web, { linkDestinations: { magic_link: 'https://app.acme.test/x#y' } }, 'destination_invalid'],
  ['always', web, { linkDestinations: { password_reset: 'https://gone.acme.test/x' } }, web],
  ['always', web, { baseUrl: null, linkDestinations: { magic_link: 'x' } }, 'base_url_missing destination_invalid'],
]

for (const [mode, link, change, expected] of table) {
  test(`${mode}, ${link.split(':')[0]} link, ${JSON.stringify(change)}: ${expected}`, () => {
    assert.equal(choose(link, { hostedLinks: mode, ...change }), expected)
  })
}

test('settings are validated when they are set', () => {
  const faults = (change: Partial<AppSettings>) => {
    const parsed = parseAppSettings({ ...settings, ...change }, ['en'])
    return parsed.ok ? [] : parsed.issues.map((issue) => `${issue.field} ${issue.code}`)
  }
  assert.deepEqual(faults({ hostedLinks: 'always', ...toApp, fallbackUrl: 'https://app.acme.test/get' }), [])
  assert.deepEqual(faults({ linkDestinations: { magic_link: 'https://evil.test' } }), [
    'linkDestinations.magic_link destination_invalid',
  ])
  assert.deepEqual(faults({ linkDestinations: { magic_link: 'acme://x?y' } }), [
    'linkDestinations.magic_link destination_invalid',
  ])
  const unknownType = Object.fromEntries([['nonsense', 'acme://x']]) // the command line can pass any type
  assert.deepEqual(faults({ linkDestinations: unknownType }), ['linkDestinations.nonsense destination_invalid'])
  assert.deepEqual(faults({ hostedLinks: 'sometimes' as HostedLinkMode }), ['hostedLinks unknown_mode'])
  assert.deepEqual(faults({ fallbackUrl: 'http://x.test' }), ['fallbackUrl insecure_fallback'])
  assert.deepEqual(faults({ ...toApp, appSchemes: [] }), ['linkDestinations.magic_link destination_invalid'])
})

for (const [text, expected] of [
  ['https://links.acme.test', true],
  ['https://links.acme.test:8443/go/on', true],
  ['http://localhost', true],
  ['http://localhost:4021/x', true],
  ['http://127.0.0.1:4021', true],
  ['http://127.0.0.1/x/y', true],
  ['xhttps://links.acme.test', false],
  ['https://', false],
  ['https://u@links.acme.test', false],
  ['https://links.acme.test?x', false],
  ['https://links.acme.test/x?y', false],
  ['https://links.acme.test/x y', false],
  ['https://links.acme.test/x#y', false],
  ['http://links.acme.test', false],
  ['http://localhostile.test', false],
  ['xhttp://localhost', false],
  ['http://localhost:x', false],
  ['http://localhost/x y', false],
  ['http://localhost?x', false],
] as const) {
  test(`the base URL ${text} is ${expected ? 'taken' : 'refused'}`, () => assert.equal(isLinksBaseUrl(text), expected))
}

const issuesOf = (change: Change) => {
  const { baseUrl = base, slug = 'acme', ...more } = change
  const all = { ...settings, hostedLinks: 'always' as const, ...more }
  const policy = appPolicy({ id: 'app_x' as AppId, version: 1, slug, settings: all })
  const link = parseAuthLink(web, policy.schemes)
  assert.ok(link.ok)
  const choice = chooseHostedLink({ link: link.value, type: 'magic_link', policy, baseUrl })
  return choice.kind === 'misconfigured' ? choice.issues : []
}

test('a wrong destination is an issue that names its type and what is wrong', () => {
  const [issue, ...more] = issuesOf({ linkDestinations: { magic_link: 'https://evil.test/x' } })
  assert.deepEqual([issue?.field, issue?.code, more], ['hostedLinks', 'destination_invalid', []])
  assert.match(issue?.message ?? '', /^linkDestinations\.magic_link: Compared https:\/\/evil\.test.*no allowed entry/)
  assert.match(issuesOf({ linkDestinations: { magic_link: 'https://a b' } })[0]?.message ?? '', /printable ASCII/)
  assert.match(issuesOf({ linkDestinations: { magic_link: 'acme://x?token=y' } })[0]?.message ?? '', /no query/)
  assert.match(issuesOf({ linkDestinations: { magic_link: 'acme://x#' } })[0]?.message ?? '', /no query/)
})

test('a destination on the web is not one of an app scheme, in any case of letters', () => {
  const web2 = { linkDestinations: { magic_link: 'HTTPS://app.acme.test/other' } }
  assert.equal(choose(web, { hostedLinks: 'app-schemes', ...web2 }), 'direct')
  const http = { linkDestinations: { magic_link: 'http://localhost/other' }, allowLocalhost: true }
  assert.equal(choose(web, { hostedLinks: 'app-schemes', ...http }), 'direct')
  const scheme = { linkDestinations: { magic_link: 'xhttp://other' }, appSchemes: ['xhttp'] }
  assert.equal(choose(web, { hostedLinks: 'app-schemes', ...scheme }), 'xhttp://other?token=a%26b')
})
