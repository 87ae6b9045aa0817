import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { parseAppSettings } from './check-settings.ts'
import { type AppSettings, defaultSettings } from './settings.ts'

const settings: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
  senderDomains: ['acme.test'],
  allowedUrls: ['https://app.acme.test'],
}

const faults = (authHooks: object): string[] => {
  const read = parseAppSettings({ ...settings, authHooks: authHooks as AuthHookSettings }, ['en'])
  return read.ok ? [] : read.issues.map(({ field, code }) => `${field} ${code}`)
}

test('settings that each system takes are kept as they are', () => {
  const page = 'https://app.acme.test/code'
  const authHooks: AuthHookSettings = {
    supabase: {
      verifyUrl: 'https://app.acme.test/auth/v1/verify',
      pages: { default: page, signup: page },
      lifeSeconds: { default: 60, email_change: 30 * 86_400 },
      organisationName: 'x'.repeat(100),
    },
    kratos: { pages: { login_code_valid: page } },
    zitadel: { lifeSeconds: { 'user.human.email.code.added': 61 }, organisationName: 'Acme' },
    logto: {},
  }
  const read = parseAppSettings({ ...settings, authHooks }, ['en'])
  assert.ok(read.ok, JSON.stringify(read))
  assert.deepEqual(read.value.authHooks, authHooks)
})

test('equal settings are stored in one order', () => {
  const read = (authHooks: AuthHookSettings) => {
    const { ok, ...result } = parseAppSettings({ ...settings, authHooks }, ['en'])
    return ok && JSON.stringify(result)
  }
  const logto = { organisationName: 'Acme' }
  assert.equal(read({ logto, kratos: {} }), read({ kratos: {}, logto }))
})

const wrong: [string, object, string[]][] = [
  ['a system that there is not', { hanko: {} }, ['authHooks.hanko unknown_system']],
  [
    'a kind that the system does not have',
    { logto: { pages: { signup: 'https://app.acme.test/x' }, lifeSeconds: { Signin: 600 } } },
    ['authHooks.logto.lifeSeconds.Signin unknown_kind', 'authHooks.logto.pages.signup unknown_kind'],
  ],
  [
    'a kind by a name that every object has',
    { logto: { lifeSeconds: { constructor: 600 } } },
    ['authHooks.logto.lifeSeconds.constructor unknown_kind'],
  ],
  [
    'settings that the system does not take',
    {
      kratos: { lifeSeconds: { default: 600 }, verifyUrl: 'https://app.acme.test/v', organisationName: 'A' },
    },
    [
      'authHooks.kratos.lifeSeconds not_used',
      'authHooks.kratos.verifyUrl not_used',
      'authHooks.kratos.organisationName not_used',
    ],
  ],
  [
    'a page on a host that the app does not allow',
    { logto: { pages: { default: 'https://evil.test/code' } } },
    ['authHooks.logto.pages.default destination_invalid'],
  ],
  [
    'a page with a query, and one that is no link',
    { kratos: { pages: { default: 'https://app.acme.test/code?x=y', login_code_valid: 'code' } } },
    [
      'authHooks.kratos.pages.default destination_invalid',
      'authHooks.kratos.pages.login_code_valid destination_invalid',
    ],
  ],
  [
    'an address of Supabase that the app does not allow',
    { supabase: { verifyUrl: 'https://ref.supabase.co/auth/v1/verify' } },
    ['authHooks.supabase.verifyUrl destination_invalid'],
  ],
  [
    'lives that are too short, too long, or no whole number',
    {
      supabase: {
        lifeSeconds: { default: 59, signup: 30 * 86_400 + 1, invite: 600.5, recovery: Number.NaN },
      },
    },
    ['default', 'signup', 'invite', 'recovery'].map((kind) => `authHooks.supabase.lifeSeconds.${kind} malformed_life`),
  ],
  ...['', '  ', 'x'.repeat(101), 'Acme\nInc'].map((organisationName): [string, object, string[]] => [
    `the organisation ${JSON.stringify(organisationName).slice(0, 20)}`,
    { zitadel: { organisationName } },
    ['authHooks.zitadel.organisationName malformed_text'],
  ]),
]

for (const [name, authHooks, issues] of wrong)
  test(`refused: ${name}`, () => assert.deepEqual(faults(authHooks), issues))
