import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingNames } from './settings.ts'
import { describeUnknownSettings } from './unknown-settings.ts'

test('a misspelt setting is named, with the one that was meant', () => {
  const meant = {
    POSTERN_API_LISTNE: 'POSTERN_API_LISTEN',
    POSTERN_SMTP_RATES: 'POSTERN_SMTP_RATE',
    POSTERN_LOG_LEVL: 'POSTERN_LOG_LEVEL',
    POSTERN_LINK_BASE_URL: 'POSTERN_LINKS_BASE_URL',
    POSTERN_SMPT_URL: 'POSTERN_SMTP_URL',
    POSTERN_HOSTED_BASE_URL: 'POSTERN_LINKS_BASE_URL',
  }
  for (const [name, wanted] of Object.entries(meant))
    assert.deepEqual(describeUnknownSettings({ [name]: 'x' }), [
      `${name} is not a setting, and is ignored: did you mean ${wanted}?`,
    ])
})

test('settings, those that are empty, and those of Kubernetes are left alone', () => {
  const known = Object.fromEntries(settingNames.map((name) => [name, 'x']))
  const foreign = {
    ...{ POSTERN_PORT: 'tcp://10.0.0.1:4020', POSTERN_SERVICE_HOST: '10.0.0.1', PATH: '/bin' },
    ...{ POSTERN_BASE_URL: 'http://127.0.0.1:4020', POSTERN_DELIVERY_KEY: 'x' },
  }
  assert.deepEqual(describeUnknownSettings({ ...known, ...foreign, POSTERN_NONE: ' ' }), [])
})
