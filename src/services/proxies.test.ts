import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeProxies, findProxyFaults, isProxied, readProxies } from './proxies.ts'

const through = (url: string, env: Record<string, string>) => isProxied(new URL(url), readProxies(env))
const proxy = 'http://proxy.test:3128'

test('https and http have proxies of their own, in large or small letters, with or without a scheme', () => {
  for (const name of ['HTTPS_PROXY', 'https_proxy'])
    for (const value of [proxy, 'proxy.test:3128', `${proxy}/`])
      assert.equal(readProxies({ [name]: value })?.HTTPS_PROXY, `${proxy}/`, `${name} ${value}`)
  assert.equal(readProxies({ https_proxy: 'http://small.test', HTTPS_PROXY: proxy })?.HTTPS_PROXY, 'http://small.test/')
  assert.equal(readProxies({}), null)
  assert.equal(readProxies({ HTTPS_PROXY: ' ' }), null)
  assert.equal(through('https://api.test/x', { HTTPS_PROXY: proxy }), true)
  assert.equal(through('http://api.test', { HTTPS_PROXY: proxy }), false)
  assert.equal(through('http://api.test', { http_proxy: proxy }), true)
})

test('NO_PROXY has names, domains, ports and addresses; loopback is always exempt', () => {
  const exempt = (host: string, noProxy: string) =>
    !through(`https://${host}/`, { HTTPS_PROXY: proxy, no_proxy: noProxy })
  for (const [host, noProxy] of [
    ['api.test', 'api.test'],
    ['API.test', 'other.test, Api.Test'],
    ['a.api.test', '.api.test'],
    ['a.api.test', '*.api.test'],
    ['api.test:8443', 'api.test:8443'],
    ['api.test', 'api.test:443'],
    ['anything.test', '*'],
    ['localhost:4023', ''],
    ['127.0.0.1', 'api.test'],
    ['[::1]:1', ''],
  ] as const)
    assert.ok(exempt(host, noProxy), `${host} by ${noProxy}`)
  for (const [host, noProxy] of [
    ['api.test', ''],
    ['api.test', 'pi.test'],
    ['api.test', '.api.test'],
    ['api.test.evil.test', 'api.test'],
    ['api.test', 'api.test:8443'],
  ] as const)
    assert.ok(!exempt(host, noProxy), `${host} by ${noProxy}`)
})

test('a value that is no proxy is a fault, and no fault or description repeats a password', () => {
  for (const value of ['socks5://proxy.test:1080', 'http://', 'user:p@ss word'])
    assert.deepEqual(
      findProxyFaults({ HTTPS_PROXY: value }),
      ['HTTPS_PROXY must be the URL of a proxy, such as http://proxy.example.com:3128'],
      value,
    )
  assert.deepEqual(findProxyFaults({ HTTPS_PROXY: proxy, http_proxy: 'proxy.test:1' }), [])
  const described = describeProxies(
    readProxies({ HTTPS_PROXY: 'http://user:secret@proxy.test:3128', NO_PROXY: 'a.test' }),
  )
  assert.match(
    described ?? '',
    /use the proxy HTTPS_PROXY proxy\.test:3128 \(not used for: a\.test,localhost,127\.0\.0\.1,::1\); SMTP/,
  )
  assert.doesNotMatch(described ?? '', /secret/)
})
