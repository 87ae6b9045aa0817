import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatHostPort } from '../domain/host-port.ts'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { describeAuthHooksListener } from './listeners.ts'
import { ConfigError, parseConfig } from './parse-config.ts'
import type { Environment } from './reader.ts'
import type { Mode } from './settings.ts'

const complete = {
  POSTERN_DATABASE_URL: 'sqlite:/var/lib/postern/postern.db',
  POSTERN_SECRET_KEYS: newSecretKey('k1'),
  POSTERN_SMTP_URL: 'smtp://mail.example.com:587',
}
const read = (change: Environment, mode: Mode = 'serve') => {
  const { authHooks, authHooksUrl } = parseConfig({ ...complete, ...change }, mode)
  return [authHooks === null ? null : formatHostPort(authHooks), authHooksUrl]
}

test('auth servers are listened for in dev mode, and in production where an address is given', () => {
  assert.deepEqual(read({}), [null, null])
  assert.deepEqual(read({}, 'dev'), ['127.0.0.1:4025', 'http://127.0.0.1:4025'])
  assert.deepEqual(read({ POSTERN_AUTH_HOOKS_LISTEN: '0.0.0.0:9000' }), ['0.0.0.0:9000', 'http://127.0.0.1:9000'])
  assert.deepEqual(read({ POSTERN_AUTH_HOOKS_LISTEN: '[::]:9000' }), ['[::]:9000', 'http://127.0.0.1:9000'])
  assert.deepEqual(read({ POSTERN_AUTH_HOOKS_LISTEN: '10.0.0.5:9000' }), ['10.0.0.5:9000', 'http://10.0.0.5:9000'])
  assert.deepEqual(read({ POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:1' }, 'dev'), ['127.0.0.1:1', 'http://127.0.0.1:1'])
})

test('two listeners with one port are refused by the names of their settings', () => {
  const taken = { POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:9000', POSTERN_CONSOLE_LISTEN: '127.0.0.1:9000' }
  assert.throws(() => read(taken), /POSTERN_AUTH_HOOKS_LISTEN and POSTERN_CONSOLE_LISTEN have the same port, 9000/)
})

test('the public address may have a path, and has no slash at its end', () => {
  const url = (POSTERN_AUTH_HOOKS_URL: string) => read({ POSTERN_AUTH_HOOKS_URL }, 'dev')[1]
  assert.equal(url('https://hooks.example.com/'), 'https://hooks.example.com')
  assert.equal(url('https://example.com/postern/hooks//'), 'https://example.com/postern/hooks')
  assert.equal(url('http://hooks.internal:4025'), 'http://hooks.internal:4025')
  // Commands name it on a machine where nothing listens.
  assert.deepEqual(read({ POSTERN_AUTH_HOOKS_URL: 'https://a.test' }, 'command'), [null, 'https://a.test'])
})

test('the public address of the API is the listener on loopback, unless it is given', () => {
  const url = (change: Environment, mode: Mode = 'serve') => parseConfig({ ...complete, ...change }, mode).apiUrl
  assert.equal(url({}), 'http://127.0.0.1:4020')
  assert.equal(url({ POSTERN_API_LISTEN: '[::1]:4020' }), 'http://[::1]:4020')
  assert.equal(url({ POSTERN_API_LISTEN: '0.0.0.0:4020' }), null)
  assert.equal(url({ POSTERN_API_LISTEN: '0.0.0.0:4020' }, 'dev'), 'http://127.0.0.1:4020')
  assert.equal(
    url({ POSTERN_API_LISTEN: '0.0.0.0:4020', POSTERN_API_URL: 'https://a.test/mail/' }),
    'https://a.test/mail',
  )
  assert.throws(() => url({ POSTERN_API_URL: 'a.test' }), /POSTERN_API_URL must be a URL/)
})

for (const wrong of ['hooks.example.com', 'ftp://a.test', 'https://a.test/?x=y', 'https://a.test/#x', '/hooks'])
  test(`refused as the public address: ${wrong}`, () =>
    assert.throws(
      () => read({ POSTERN_AUTH_HOOKS_URL: wrong }),
      (error: ConfigError) =>
        error instanceof ConfigError && /^POSTERN_AUTH_HOOKS_URL must be/.test(error.faults[0] ?? ''),
    ))

test('the public address of the SMTP listener has a host and perhaps a port; commands ignore a malformed one', () => {
  const url = (POSTERN_SUBMISSION_URL: string, mode: Mode = 'serve') =>
    parseConfig({ ...complete, POSTERN_SUBMISSION_URL }, mode).submissionUrl
  for (const right of ['smtp://mail.example.com:587', 'smtps://mail.example.com', 'smtp://127.0.0.1:4027?tls=none'])
    assert.equal(url(right), right)
  for (const wrong of ['mail.example.com:587', 'smtp://mail.example.com:99999', 'smtp://a/b']) {
    assert.throws(() => url(wrong), /POSTERN_SUBMISSION_URL must look like smtp:/)
    assert.equal(url(wrong, 'command'), null)
  }
})

test('without a public address of the SMTP listener, programs on this machine reach it by its TLS', () => {
  const url = (change: Environment) => parseConfig({ ...complete, ...change }, 'command').submissionUrl
  const files = { POSTERN_SUBMISSION_TLS: '/etc/cert.pem:/etc/key.pem' }
  const [clear, implicit] = [
    { POSTERN_SUBMISSION_LISTEN: '127.0.0.1:4027' },
    { ...files, POSTERN_SUBMISSION_TLS_LISTEN: '127.0.0.1:4465' },
  ]
  assert.equal(url(clear), 'smtp://127.0.0.1:4027?tls=none')
  assert.equal(url({ ...clear, ...files }), 'smtp://127.0.0.1:4027')
  assert.equal(url(implicit), 'smtps://127.0.0.1:4465')
  assert.equal(url({ ...clear, ...implicit }), 'smtp://127.0.0.1:4027')
  assert.equal(url({ ...files, POSTERN_SUBMISSION_LISTEN: '0.0.0.0:587' }), null)
  assert.equal(url({}), null)
})

test('a malformed address to listen on is refused', () => {
  assert.throws(() => read({ POSTERN_AUTH_HOOKS_LISTEN: '4025' }), /POSTERN_AUTH_HOOKS_LISTEN must look like/)
})

test('a process without the role listens for no auth server; a command of dev mode knows the address', () => {
  const listens = (POSTERN_ROLES: string) =>
    describeAuthHooksListener(
      parseConfig({ ...complete, POSTERN_AUTH_HOOKS_LISTEN: '0.0.0.0:9000', POSTERN_ROLES }, 'serve'),
    )
  assert.deepEqual([listens('api'), listens('api,auth-hooks')], [null, '0.0.0.0:9000'])
  const { POSTERN_DATABASE_URL: _, ...ofDev } = complete
  assert.equal(parseConfig(ofDev, 'command').authHooksUrl, 'http://127.0.0.1:4025')
  assert.equal(parseConfig(ofDev, 'command').linksBaseUrl, 'http://127.0.0.1:4021')
  for (const [listen, url] of [
    ['[::1]:1', 'http://[::1]:1'],
    ['[::]:1', 'http://127.0.0.1:1'],
    ['192.168.1.5:1', 'http://127.0.0.1:1'],
  ])
    assert.equal(parseConfig({ ...ofDev, POSTERN_LINKS_LISTEN: listen }, 'command').linksBaseUrl, url)
})
