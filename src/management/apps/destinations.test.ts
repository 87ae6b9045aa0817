import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testSettings } from '../../../test/support/service.ts'
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { newId } from '../../domain/id.ts'
import { settingsFields } from '../settings-schema.ts'
import { sendsElsewhere } from './destinations.ts'

const settings: AppSettings = {
  ...testSettings,
  replyTo: 'help@acme.test',
  webhookUrl: 'https://app.acme.test/hook',
  linkDestinations: { magic_link: 'acme://auth' },
  authHooks: { kratos: { pages: { default: 'https://app.acme.test/code' } } },
  branding: { logoUrl: 'https://acme.test/logo.png' },
}
const app: App = {
  ...{
    id: newId('app', 0),
    slug: 'acme',
    version: 1,
    createdAt: 0,
    updatedAt: 0,
    status: 'active',
    settings,
  },
}

/** A patch of each setting to another value, and whether that sends somebody or something elsewhere. */
const patches: Readonly<Record<keyof typeof settingsFields, readonly [patch: unknown, elsewhere: boolean]>> = {
  name: ['Other', false],
  from: [{ address: 'other@acme.test' }, true],
  senderDomains: [['acme.test', 'other.test'], true],
  envelopeFrom: ['bounces@acme.test', true],
  replyTo: ['evil@example.com', true],
  supportContact: ['https://evil.example', true],
  allowedUrls: [['https://app.acme.test', 'https://evil.example'], true],
  appSchemes: [['acme', 'com.evil.app'], true],
  allowLocalhost: [true, true],
  allowCodes: [true, false],
  supersede: [false, false],
  hostedLinks: ['off', false],
  linkDomain: ['links.evil.example', true],
  transport: ['evil', true],
  useLinkDomain: [true, true],
  linkDestinations: [{ password_reset: 'acme://reset' }, true],
  webhookUrl: ['https://evil.example', true],
  authHooks: [{ kratos: { pages: { recovery: 'https://app.acme.test/evil' } } }, true],
  fallbackUrl: ['https://evil.example', true],
  newEmailUrl: ['https://evil.example', true],
  branding: [{ logoUrl: 'https://evil.example/x.png' }, true],
  locale: ['de', false],
  formOfAddress: ['informal', false],
  words: [{ magic_link: { en: { subject: 'Yours', text: 'Hello.' } } }, false],
  limits: [{ daily: 5 }, false],
}

test('a change that sends people, mail or data elsewhere is distinguished from every other', () => {
  assert.deepEqual(Object.keys(patches).sort(), Object.keys(settingsFields).sort(), 'every setting is judged')
  for (const [name, [patch, elsewhere]] of Object.entries(patches))
    assert.equal(sendsElsewhere(app, { [name]: patch }), elsewhere, name)
})

test('what stays, and what is taken away, goes nowhere else', () => {
  assert.equal(sendsElsewhere(app, settings), false)
  const less = {
    replyTo: null,
    webhookUrl: null,
    allowedUrls: [],
    appSchemes: [],
    linkDestinations: { magic_link: null },
  }
  assert.equal(sendsElsewhere(app, { ...less, branding: { logoUrl: null }, authHooks: { kratos: null } }), false)
  assert.equal(sendsElsewhere(app, { branding: { accentColour: '#ffffff' }, from: { name: 'Other' } }), false)
})

test('an app that is enabled sends again', () => {
  assert.equal(sendsElsewhere({ ...app, status: 'disabled' }, { status: 'active' }), true)
  assert.equal(sendsElsewhere({ ...app, status: 'suspended' }, { status: 'active' }), true)
  assert.equal(sendsElsewhere({ ...app, status: 'disabled' }, { status: null }), true)
  assert.equal(sendsElsewhere(app, { status: 'disabled' }), false)
})
