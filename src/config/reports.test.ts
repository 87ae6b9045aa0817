import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSecrets, writeKeys } from '../../test/support/provider-calls.ts'
import { temporaryFolder } from '../../test/support/temporary.ts'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { ConfigError, parseConfig } from './parse-config.ts'
import type { Environment } from './reader.ts'
import { describeReports } from './reports.ts'
import type { Mode } from './settings.ts'

const POSTERN_REPORTS_LISTEN = '127.0.0.1:4026'
const keys = writeKeys(newSecrets())
const complete = {
  POSTERN_DATABASE_URL: 'sqlite:/var/lib/postern/postern.db',
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
  POSTERN_SMTP_URL: 'smtp://mail.example.com:587',
}
const read = (change: Environment, mode: Mode = 'serve') => {
  const { reportsListener, reportProviders } = describeReports(parseConfig({ ...complete, ...change }, mode))
  return [reportsListener, reportProviders.join(' ')]
}
const faults = (change: Environment): readonly string[] => {
  try {
    read(change)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

test('webhooks are taken where an address is given, by a process with the role for it', () => {
  const given = { POSTERN_REPORTS_LISTEN, POSTERN_REPORTS_KEYS: keys }
  const all = 'postmark resend sendgrid mailgun brevo generic'
  assert.deepEqual(read(given), ['127.0.0.1:4026', all])
  assert.deepEqual(read({ ...given, POSTERN_ROLES: 'worker' }), [null, ''])
  assert.deepEqual(read({ POSTERN_REPORTS_KEYS: keys }), [null, ''], 'keys for other processes')
  assert.deepEqual(read({}), [null, ''])
  assert.deepEqual(read({}, 'dev'), [null, ''])
})

test('without keys nobody could prove anything, so the service does not start', () => {
  const [missing, ...more] = faults({ POSTERN_REPORTS_LISTEN })
  assert.match(missing ?? '', /^POSTERN_REPORTS_KEYS is missing: .*basic:USER:PASSWORD/)
  assert.deepEqual(more, [])
  assert.match(
    faults({ POSTERN_REPORTS_LISTEN: '4026', POSTERN_REPORTS_KEYS: keys })[0] ?? '',
    /^POSTERN_REPORTS_LISTEN must look like/,
  )
  const wrong = faults({ POSTERN_REPORTS_LISTEN, POSTERN_REPORTS_KEYS: 'basic:user:short resend:4711' })
  assert.deepEqual(wrong, [
    'POSTERN_REPORTS_KEYS: key 1 must be basic:USER:PASSWORD, with a password of at least 16 characters',
    'POSTERN_REPORTS_KEYS: key 2 must be resend:whsec_…, the signing secret that Resend shows',
  ])
})

test('the keys may be in a file that others cannot read; a command, which may not read it, works without', (t) => {
  const file = join(temporaryFolder(t), 'keys')
  writeFileSync(file, `${keys.replaceAll(' ', '\n')}\n`, { mode: 0o600 })
  const given = { POSTERN_REPORTS_LISTEN, POSTERN_REPORTS_KEYS: `file:${file}` }
  assert.match(read(given).join(), /^127\.0\.0\.1:4026,postmark resend/)
  chmodSync(file, 0o644)
  assert.match(faults(given).join(), /others may read/)
  const nowhere = { ...given, POSTERN_REPORTS_KEYS: 'file:/nowhere/keys' }
  assert.match(faults(nowhere).join(), /cannot read \/nowhere\/keys/)
  assert.deepEqual(read(nowhere, 'command'), ['127.0.0.1:4026', ''])
  assert.deepEqual(read({ POSTERN_REPORTS_LISTEN }, 'command'), ['127.0.0.1:4026', ''])
})
