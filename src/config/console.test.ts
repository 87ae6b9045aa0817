import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { ConfigError, parseConfig } from './parse-config.ts'
import type { Environment } from './reader.ts'
import type { Mode } from './settings.ts'

const complete = {
  POSTERN_DATABASE_URL: 'sqlite:/var/lib/postern/postern.db',
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
  POSTERN_SMTP_URL: 'smtp://mail.example.com:587',
}
const parse = (change: Environment, mode: Mode = 'serve') => parseConfig({ ...complete, ...change }, mode)

function faults(change: Environment): string {
  try {
    parse(change)
    return ''
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
}

const addressOf = (change: Environment, mode: Mode = 'serve') => {
  const { consoleIsLocal, consoleUrl, isDev } = parse(change, mode)
  return { consoleIsLocal, consoleUrl, isDev }
}

test('without an address of its own the console answers to names of the machine, wherever it listens', () => {
  const local = { consoleIsLocal: true, isDev: false }
  assert.deepEqual(addressOf({}), { ...local, consoleUrl: 'http://postern.localhost:4022' })
  const open = { POSTERN_CONSOLE_LISTEN: '0.0.0.0:9000' }
  assert.deepEqual(addressOf(open), { ...local, consoleUrl: 'http://postern.localhost:9000' })
  assert.deepEqual(addressOf({}, 'dev'), { ...local, isDev: true, consoleUrl: 'http://127.0.0.1:4022' })
  assert.deepEqual(addressOf({ POSTERN_CONSOLE_LISTEN: 'off' }), {
    ...local,
    consoleIsLocal: false,
    consoleUrl: null,
  })
})

test('with an address of its own it answers to that name, and on loopback to those of the machine', () => {
  const url = { POSTERN_CONSOLE_URL: 'https://postern.example.com/' }
  const consoleUrl = 'https://postern.example.com'
  assert.deepEqual(addressOf(url), { consoleUrl, consoleIsLocal: true, isDev: false })
  const open = { ...url, POSTERN_CONSOLE_LISTEN: '0.0.0.0:4022' }
  assert.deepEqual(addressOf(open), { consoleUrl, consoleIsLocal: false, isDev: false })
  assert.equal(addressOf({ POSTERN_CONSOLE_URL: 'http://localhost:8080' }).consoleUrl, 'http://localhost:8080')
  for (const wrong of [
    'http://postern.example.com',
    'https://a.test/path',
    'postern.example.com',
    'https://a.test?x',
    'ftp://a.test',
  ])
    assert.match(faults({ POSTERN_CONSOLE_URL: wrong }), /POSTERN_CONSOLE_URL must be an https origin/, wrong)
})

const oidc = {
  POSTERN_OIDC_ISSUER: 'https://id.example.com/realms/main',
  POSTERN_OIDC_CLIENT_ID: 'postern',
  POSTERN_OIDC_CLIENT_SECRET: 'a-secret-of-the-client',
  POSTERN_OIDC_ROLES: 'claim=roles postern-admins=admin a=b=reader acme-team=operator:acme',
}

test('a provider is read with its claim and its groups; without an issuer there is none', () => {
  assert.equal(parse({}).oidc, null)
  assert.equal(parse(oidc, 'command').oidc, null)
  assert.deepEqual(parse(oidc).oidc, {
    issuer: 'https://id.example.com/realms/main',
    clientId: 'postern',
    clientSecret: 'a-secret-of-the-client',
    claim: 'roles',
    groups: [
      { group: 'postern-admins', role: 'admin', app: null },
      { group: 'a=b', role: 'reader', app: null },
      { group: 'acme-team', role: 'operator', app: 'acme' },
    ],
  })
})

test('what is missing or unsafe of a provider is named, and its secret is not repeated', (t) => {
  const missing = faults({ POSTERN_OIDC_ISSUER: oidc.POSTERN_OIDC_ISSUER })
  for (const name of ['CLIENT_ID', 'CLIENT_SECRET', 'ROLES'])
    assert.match(missing, new RegExp(`POSTERN_OIDC_${name} is missing`))
  assert.match(faults({ ...oidc, POSTERN_OIDC_ISSUER: 'http://id.example.com' }), /must be the https address/)
  for (const host of ['localhost', '127.0.0.2', '[::1]'])
    assert.equal(parse({ ...oidc, POSTERN_OIDC_ISSUER: `http://${host}:8080/realm` }).oidc?.claim, 'roles', host)
  assert.match(faults({ ...oidc, POSTERN_OIDC_ROLES: 'admins=root' }), /"admins=root" must look like/)
  assert.match(faults({ ...oidc, POSTERN_OIDC_ROLES: 'admins' }), /"admins" must look like/)
  for (const rule of ['team=operator:', 'team=operator:acme:shop'])
    assert.match(faults({ ...oidc, POSTERN_OIDC_ROLES: rule }), new RegExp(`"${rule}" must look like`))
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'secret')
  writeFileSync(file, 'a-secret-of-the-client\n', { mode: 0o600 })
  const inFile = { ...oidc, POSTERN_OIDC_CLIENT_SECRET: `file:${file}` }
  assert.equal(parse(inFile).oidc?.clientSecret, 'a-secret-of-the-client')
  chmodSync(file, 0o644)
  const open = faults(inFile)
  assert.match(open, /others may read/)
  assert.doesNotMatch(open, /a-secret-of-the-client/)
  assert.match(faults({ ...oidc, POSTERN_OIDC_CLIENT_SECRET: `file:${folder}/none` }), /cannot read/)
})
