import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId } from '../id.ts'
import { appPolicy } from './app-policy.ts'
import { parseAppSettings } from './check-settings.ts'
import { type AppSettings, defaultSettings } from './settings.ts'

const settings: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
  senderDomains: ['acme.test'],
}

const faults = (change: Partial<AppSettings>): string[] => {
  const parsed = parseAppSettings({ ...settings, ...change }, ['en', 'de'])
  return parsed.ok ? [] : parsed.issues.map(({ field, code }) => `${field} ${code}`)
}

test('a new app allows nothing and has the documented limits', () => {
  assert.deepEqual(defaultSettings, {
    senderDomains: [],
    allowedUrls: [],
    appSchemes: [],
    allowLocalhost: false,
    allowCodes: false,
    supersede: true,
    hostedLinks: 'auto',
    useLinkDomain: false,
    linkDestinations: {},
    branding: {},
    locale: 'en',
    limits: { keyPerMinute: 600, recipientPerHour: 10, daily: 10_000 },
  })
})

test('valid settings keep their values, with the allow-list in normal form and without repeats', () => {
  const change = {
    allowedUrls: ['HTTPS://A.test/', 'https://a.test', 'https://b.test/x'],
    appSchemes: ['ACME', 'acme', 'acme://x'],
    supportContact: 'help@acme.test',
    locale: 'de',
  }
  const parsed = parseAppSettings({ ...settings, ...change }, ['en', 'de'])
  assert.deepEqual(parsed, {
    ok: true,
    value: {
      ...settings,
      ...change,
      allowedUrls: ['https://a.test', 'https://b.test/x'],
      appSchemes: ['acme', 'acme://x'],
    },
  })
})

const hundred = 'x'.repeat(100)
const cases: [string, Partial<AppSettings>, string[]][] = [
  ['a name of 100 characters', { name: hundred }, []],
  ['a name of 101', { name: `${hundred}x` }, ['name malformed_text']],
  ['a blank name', { name: ' ' }, ['name malformed_text']],
  ['a name with a line break', { name: 'a\nb' }, ['name malformed_text']],
  [
    'an address in the sender name',
    { from: { name: 'CEO <ceo@bank.test>', address: 'a@acme.test' } },
    ['from.name address_in_name'],
  ],
  [
    'an address as sender name',
    { from: { name: 'ceo@bank.test', address: 'a@acme.test' } },
    ['from.name address_in_name'],
  ],
  ['a sender name with an at', { from: { name: 'Acme @ Home', address: 'a@acme.test' } }, []],
  ['a sender name of 100', { from: { name: hundred, address: 'a@acme.test' } }, []],
  ['a sender name of 101', { from: { name: `${hundred}x`, address: 'a@acme.test' } }, ['from.name malformed_text']],
  ['a sender without address', { from: { name: 'A', address: '' } }, ['from.address not_an_address']],
  ['a Reply-To that is none', { replyTo: 'x' }, ['replyTo not_an_address']],
  ['a bounce address that is none', { envelopeFrom: 'x' }, ['envelopeFrom not_an_address']],
  ['a bounce address with a plus and 23 more', { envelopeFrom: `${'b'.repeat(23)}+@acme.test` }, []],
  ['one with 24', { envelopeFrom: `${'b'.repeat(24)}+@acme.test` }, ['envelopeFrom too_long']],
  ['one of 24 without a plus', { envelopeFrom: `${'b'.repeat(24)}@acme.test` }, []],
  ['an address as contact', { supportContact: 'help@acme.test' }, []],
  ['a page as contact', { supportContact: 'https://acme.test/help' }, []],
  ['a contact of 200', { supportContact: `https://acme.test/${'x'.repeat(182)}` }, []],
  [
    'a contact of 201',
    { supportContact: `https://acme.test/${'x'.repeat(183)}` },
    ['supportContact malformed_contact'],
  ],
  ['a text as contact', { supportContact: 'foo bar' }, ['supportContact malformed_contact']],
  ['a page without TLS as contact', { supportContact: 'http://acme.test' }, ['supportContact malformed_contact']],
  ['an unknown locale', { locale: 'xx' }, ['locale unknown_locale']],
  ['a logo', { branding: { logoUrl: 'https://a.test/l.png' } }, []],
  ['a logo over http', { branding: { logoUrl: 'http://a.test/l.png' } }, ['branding.logoUrl insecure_logo']],
  ['a logo with a space', { branding: { logoUrl: 'https://a.test/l l' } }, ['branding.logoUrl insecure_logo']],
  ['a logo with a login', { branding: { logoUrl: 'https://u:p@a.test/' } }, ['branding.logoUrl insecure_logo']],
  ['a logo that is no URL', { branding: { logoUrl: 'https://[' } }, ['branding.logoUrl insecure_logo']],
  ['a logo after text', { branding: { logoUrl: 'xhttps://a.test' } }, ['branding.logoUrl insecure_logo']],
  ['a colour', { branding: { accentColour: '#1A2b3c' } }, []],
  ['a short colour', { branding: { accentColour: '#abc' } }, ['branding.accentColour malformed_colour']],
  ['a long colour', { branding: { accentColour: '#1a2b3c4' } }, ['branding.accentColour malformed_colour']],
  ['text before a colour', { branding: { accentColour: 'x#1a2b3c' } }, ['branding.accentColour malformed_colour']],
  ['an address line of 200', { branding: { addressLine: hundred + hundred } }, []],
  [
    'an address line of 201',
    { branding: { addressLine: `${hundred}${hundred}x` } },
    ['branding.addressLine malformed_text'],
  ],
  ['an address line with a control', { branding: { addressLine: '\u0007' } }, ['branding.addressLine malformed_text']],
  ['a fallback', { fallbackUrl: 'https://a.test/get' }, []],
  ['a page for a new email', { newEmailUrl: 'https://a.test/sign-in' }, []],
  ['a page for a new email over http', { newEmailUrl: 'http://a.test' }, ['newEmailUrl insecure_new_email_url']],
  ['a fallback over http', { fallbackUrl: 'http://a.test' }, ['fallbackUrl insecure_fallback']],
  ['a fallback of 2,008 characters', { fallbackUrl: `https://${'a'.repeat(2000)}` }, []],
  ['a longer fallback', { fallbackUrl: `https://${'a'.repeat(2001)}` }, ['fallbackUrl insecure_fallback']],
  [
    'settings that are too large in all: the largest one',
    { appSchemes: Array(6000).fill(''), fallbackUrl: 'x'.repeat(9000) },
    ['appSchemes too_large'],
  ],
  [
    'every fault of the allow-list',
    { allowedUrls: ['x', 'y'], appSchemes: ['data'] },
    ['allowedUrls malformed_entry', 'allowedUrls malformed_entry', 'appSchemes standard_scheme'],
  ],
]
for (const [name, change, expected] of cases) {
  test(`${name}: ${expected.join(', ') || 'valid'}`, () => assert.deepEqual(faults(change), expected))
}

const { limits } = defaultSettings
for (const [name, max] of [
  ['keyPerMinute', 6_000_000],
  ['recipientPerHour', 1_000_000],
  ['daily', 1_000_000_000],
] as const) {
  test(`${name} is a whole number from 1 to ${max}`, () => {
    const fault = [`limits.${name} malformed_limit`]
    for (const value of [1, max]) assert.deepEqual(faults({ limits: { ...limits, [name]: value } }), [])
    // `unknown`: settings are read from JSON, where no type holds.
    const wrong: readonly unknown[] = [0, max + 1, 1.5, Number.NaN, '5']
    for (const value of wrong) assert.deepEqual(faults({ limits: { ...limits, [name]: value } }), fault)
  })
}

test('a policy leaves out entries that no longer follow the rules', () => {
  const { allowedUrls, appSchemes, schemes, fromAddress, slug, version } = appPolicy({
    id: 'app_x' as AppId,
    version: 3,
    slug: 'acme',
    settings: {
      ...settings,
      allowedUrls: ['https://*.vercel.app', 'https://a.test'],
      appSchemes: ['data', 'acme'],
    },
  })
  assert.deepEqual(
    [allowedUrls.map(({ text }) => text), appSchemes.map(({ text }) => text), [...schemes]],
    [['https://a.test'], ['acme'], ['acme']],
  )
  assert.deepEqual([fromAddress, slug, version], ['auth@acme.test', 'acme', 3])
})
