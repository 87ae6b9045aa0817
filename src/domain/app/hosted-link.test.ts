import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId } from '../id.ts'
import { parseAuthLink } from '../request/auth-link.ts'
import { appPolicy } from './app-policy.ts'
import { chooseHostedLink, type HostedLinkMode } from './hosted-link.ts'
import { type AppSettings, defaultSettings, parseAppSettings } from './settings.ts'

const settings: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
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
  [
    'always',
    web,
    { baseUrl: null, linkDestinations: { magic_link: 'x' } },
    'base_url_missing destination_invalid',
  ],
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
  assert.deepEqual(faults({ linkDestinations: unknownType }), [
    'linkDestinations.nonsense destination_invalid',
  ])
  assert.deepEqual(faults({ hostedLinks: 'sometimes' as HostedLinkMode }), ['hostedLinks unknown_mode'])
  assert.deepEqual(faults({ fallbackUrl: 'http://x.test' }), ['fallbackUrl insecure_fallback'])
  assert.deepEqual(faults({ ...toApp, appSchemes: [] }), ['linkDestinations.magic_link destination_invalid'])
})
