import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { ConfigError, parseConfig } from './parse-config.ts'
import type { Environment } from './reader.ts'
import type { Mode } from './settings.ts'

const complete = {
  POSTERN_DATABASE_URL: 'sqlite:/var/lib/postern/postern.db',
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
  POSTERN_SMTP_URL: 'smtp://user:p%40ss@mail.example.com:587',
}

function faults(change: Environment, mode: Mode = 'serve'): readonly string[] {
  try {
    parseConfig({ ...complete, ...change }, mode)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

test('a complete configuration is read', () => {
  const config = parseConfig(complete, 'serve')
  assert.deepEqual(config.database, { engine: 'sqlite', path: '/var/lib/postern/postern.db' })
  assert.deepEqual(config.relays[0]?.address, {
    protocol: 'smtp',
    host: 'mail.example.com',
    port: 587,
    tls: 'starttls',
    credentials: { user: 'user', pass: 'p@ss' },
    greetingName: null,
    keepsSender: false,
    returnsLate: false,
    service: null,
  })
  assert.deepEqual(config.api, { host: '127.0.0.1', port: 4020 })
  assert.deepEqual(config.console, { host: '127.0.0.1', port: 4022 })
  assert.equal(parseConfig({ ...complete, POSTERN_CONSOLE_LISTEN: 'off' }, 'serve').console, null)
})

test('every fault is named at once', () => {
  assert.throws(
    () => parseConfig({}, 'serve'),
    (error: ConfigError) => {
      assert.deepEqual(
        error.faults.map((fault) => fault.replace(/:.*/, '')),
        ['POSTERN_DATABASE_URL is missing', 'POSTERN_SECRET_KEYS is missing', 'POSTERN_SMTP_URL is missing'],
      )
      return true
    },
  )
})

const wrong: [string, Environment, RegExp][] = [
  ['a database of another kind', { POSTERN_DATABASE_URL: 'mysql://x' }, /sqlite:/],
  ['a malformed key', { POSTERN_SECRET_KEYS: 'k1:abc' }, /32/],
  ['a key file that is not there', { POSTERN_SECRET_KEYS: 'file:/nonexistent/keys' }, /cannot read/],
  ['a capture relay in production', { POSTERN_SMTP_URL: 'capture' }, /dev mode/],
  ['plain text to another machine', { POSTERN_SMTP_URL: 'smtp://203.0.113.1?tls=none' }, /needs TLS/],
  ['a password in plain text', { POSTERN_SMTP_URL: 'smtp://u:p@10.0.0.1?tls=none' }, /leave out user, password/],
  ['a relay that is no URL', { POSTERN_SMTP_URL: 'mail.example.com' }, /relay 1/],
  ['an unknown relay option', { POSTERN_SMTP_URL: 'smtp://mail.example.com?pool=1' }, /"pool"/],
  ['a rate of nothing', { POSTERN_SMTP_URL: 'smtp://mail.example.com?rate=0' }, /rate is a whole number/],
  ['a user without password', { POSTERN_SMTP_URL: 'smtp://user@mail.example.com' }, /both user and password/],
  ['a password alone', { POSTERN_SMTP_URL: 'smtp://:pass@mail.example.com' }, /both user and password/],
  ['a port of the base URL out of range', { POSTERN_LINKS_BASE_URL: 'https://links.test:99999' }, /https URL/],
  ['a raw # in a password', { POSTERN_SMTP_URL: 'smtp://u:p@ss#w@mail.example.com' }, /%23/],
  ['a raw / in a password', { POSTERN_SMTP_URL: 'smtp://u:p@ss/w@mail.example.com' }, /%2F/],
  ['a space in a password', { POSTERN_SMTP_URL: 'smtp://u:a b@mail.example.com' }, /%20/],
  ['an unknown role', { POSTERN_ROLES: 'api,cook' }, /"cook"/],
  ['a malformed address', { POSTERN_API_LISTEN: '4020' }, /POSTERN_API_LISTEN/],
  ['a port out of range', { POSTERN_OPS_LISTEN: '127.0.0.1:70000' }, /POSTERN_OPS_LISTEN/],
  ['a queue of no size', { POSTERN_QUEUE_MAX: '0' }, /POSTERN_QUEUE_MAX/],
  ['a bounce address that is none', { POSTERN_BOUNCE_ADDRESS: 'bounces' }, /bounces@bounce\.example\.com/],
  [
    'a bounce address without room for a reference',
    { POSTERN_BOUNCE_ADDRESS: `${'b'.repeat(24)}@b.test` },
    /at most 23 characters/,
  ],
  [
    'a certificate without its key',
    { POSTERN_BOUNCE_LISTEN: '127.0.0.1:4024', POSTERN_BOUNCE_TLS: '/a' },
    /must be CERTIFICATE:KEY/,
  ],
  [
    'a certificate that is not there',
    { POSTERN_BOUNCE_LISTEN: '127.0.0.1:4024', POSTERN_BOUNCE_TLS: '/nowhere/c:/nowhere/k' },
    /cannot read \/nowhere\/c/,
  ],
  ['a bounce listener without a port', { POSTERN_BOUNCE_LISTEN: '4024' }, /POSTERN_BOUNCE_LISTEN must look/],
  ['an unknown log level', { POSTERN_LOG_LEVEL: 'loud' }, /POSTERN_LOG_LEVEL/],
]
for (const [name, change, expected] of wrong) {
  test(`${name} is refused`, () => {
    const found = faults(change)
    assert.equal(found.length, 1, found.join('\n'))
    assert.match(found[0] ?? '', expected)
  })
}

test('every missing setting comes with an example', () => {
  assert.throws(
    () => parseConfig({}, 'serve'),
    /sqlite:.*postgres:[\s\S]*postern secret new[\s\S]*smtp:\/\/user:password@host/,
  )
})

const passwords: [string, string][] = [
  ['50%off', '50%off'],
  ['50%25off', '50%off'],
  ['p%40ss', 'p@ss'],
  ['%E0%A4%A', '%E0%A4%A'],
]
for (const [written, meant] of passwords) {
  test(`the SMTP password ${written} is read as ${meant}`, () => {
    const env = { ...complete, POSTERN_SMTP_URL: `smtp://user:${written}@smtp.example.com:587` }
    const address = parseConfig(env, 'serve').relays[0]?.address
    assert.deepEqual(address?.protocol === 'smtp' && address.credentials, { user: 'user', pass: meant })
  })
}

test('every fault is listed, also several of one relay and those beside a mistyped role', () => {
  const POSTERN_SMTP_URL = 'smtp://user@mail.example.com?conections=3&rate=a&tls=maybe&ca=/nope'
  const found = faults({ POSTERN_SMTP_URL, POSTERN_ROLES: 'api,wroker', POSTERN_QUEUE_MAX: '0' })
  const expected = [
    /wroker/,
    /relay 1: unknown option "conections"/,
    /tls is starttls or none/,
    /both user and password/,
    /cannot read the file named by ca/,
    /rate is a whole number/,
    /POSTERN_QUEUE_MAX/,
  ]
  assert.equal(found.length, expected.length, found.join('\n'))
  for (const [index, shape] of expected.entries()) assert.match(found[index] ?? '', shape)
})

test('no fault repeats a password or a secret', () => {
  const found = faults({
    POSTERN_SMTP_URL: 'smtp://user:hunter2@mail.example.com?x=1',
    POSTERN_SECRET_KEYS: 'k1:aHVudGVyMg==',
  })
  assert.equal(found.length, 2)
  assert.doesNotMatch(found.join(), /hunter2|aHVudGVyMg/)
})

test('several relays, each with its own bounds', () => {
  const { relays } = parseConfig(
    {
      ...complete,
      POSTERN_SMTP_URL:
        'smtps://a.test?connections=20&rate=14 smtp://localhost:2525 resend://k1@api.resend.com?rate=3 resend://k2@api.resend.com?rate=3',
      POSTERN_SMTP_CONNECTIONS: '7',
      POSTERN_SMTP_RATE: '9',
    },
    'serve',
  )
  assert.deepEqual(
    relays.map(({ name, connectionsMax, rate, takesReserved }) => [name, connectionsMax, rate, takesReserved]),
    [
      ['a.test:465', 20, 14, false],
      ['localhost:2525', 7, 9, true],
      ['api.resend.com', 7, 3, false],
      ['api.resend.com#2', 7, 3, false],
    ],
  )
})

test('the dev inbox stays on loopback, unless POSTERN_CONSOLE_PUBLIC is yes', () => {
  const everywhere = { POSTERN_CONSOLE_LISTEN: '0.0.0.0:4022' }
  assert.match(faults(everywhere, 'dev').join(), /loopback/)
  assert.deepEqual(faults({ ...everywhere, POSTERN_CONSOLE_PUBLIC: 'yes' }, 'dev'), [])
})

test('webhooks go into the private network in dev mode, or where the configuration says so', () => {
  const read = (value: string | undefined, mode: Mode) =>
    parseConfig({ ...complete, POSTERN_APP_WEBHOOKS_PRIVATE: value }, mode).allowsPrivateWebhooks
  assert.deepEqual([read(undefined, 'serve'), read('no', 'serve'), read('yes', 'serve')], [false, false, true])
  assert.deepEqual([read(undefined, 'dev'), read('no', 'dev')], [true, false])
  assert.match(
    faults({ POSTERN_APP_WEBHOOKS_PRIVATE: 'true' }).join(),
    /POSTERN_APP_WEBHOOKS_PRIVATE must be yes or no/,
  )
})

test('alerts go to an https address, or to this machine, and are signed with a long secret', () => {
  const read = (url?: string, secret?: string) =>
    parseConfig({ ...complete, POSTERN_ALERTS_URL: url, POSTERN_ALERTS_SECRET: secret }, 'serve').alerts
  assert.equal(read(), null)
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
  assert.deepEqual(read('https://hooks.acme.test/T0/x', secret)?.key, Buffer.alloc(32))
  assert.equal(read('http://localhost:9000/')?.key, null)
  const refused = (url: string, given?: string) =>
    faults({ POSTERN_ALERTS_URL: url, POSTERN_ALERTS_SECRET: given }).join()
  for (const url of ['http://hooks.acme.test/T0/x', 'hooks.acme.test', 'https://user:pw@acme.test/'])
    assert.match(refused(url), /^POSTERN_ALERTS_URL must be an https URL; http is for localhost only$/)
  for (const given of ['secret', 'whsec_', `whsec_${Buffer.alloc(16).toString('base64')}`])
    assert.match(
      refused('https://hooks.acme.test/', given),
      /^POSTERN_ALERTS_SECRET must be whsec_ and at least 24 bytes/,
    )
  assert.match(refused('', secret), /set both, or neither/)
})

test('dev mode captures mail, unless a relay is set', () => {
  assert.equal(parseConfig(complete, 'dev').relays.length, 1)
  for (const none of [undefined, 'capture'])
    assert.deepEqual(parseConfig({ ...complete, POSTERN_SMTP_URL: none }, 'dev').relays, [])
})

test('a line break at the end of a value, as files that are mounted have it, is no part of it', () => {
  const broken = Object.fromEntries(Object.entries(complete).map(([name, value]) => [name, `${value}\n`]))
  assert.deepEqual(parseConfig(broken, 'serve'), parseConfig(complete, 'serve'))
  assert.deepEqual(parseConfig({ ...complete, POSTERN_API_LISTEN: ' \n' }, 'serve').api.port, 4020)
})
