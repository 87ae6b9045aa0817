/** Hosted links at the domains of apps: each opens at its own domain alone. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { newLinkDomains } from '../../../src/compose/link-domains.ts'
import type { AppSettings } from '../../../src/domain/app/settings.ts'
import type { PosternEvent } from '../../../src/observe/events.ts'
import { isReachProof, newNonce, proofPath } from '../../../src/store/crypto/reach-proof.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { languageOf } from '../../../src/templates/locales/locales.ts'
import { unknownPage } from '../../../src/templates/pages/hosted-page.ts'
import { newLinksListener } from '../../../src/web/links/links-listener.ts'
import { startHostedLinks } from '../../support/hosted-links.ts'
import { operator } from '../../support/operator.ts'
import { testSettings } from '../../support/service.ts'
import { atEnd } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const { service, receive, newApp } = await startHostedLinks({ after })
const base = 'links.acme.test'
const ofGlobex = await newApp('globex', { linkDomain: 'links.globex.example', useLinkDomain: true })
const ofInitech = await newApp('initech', { linkDomain: 'go.initech.example', useLinkDomain: true })

type Asked = { readonly host: string | null; readonly method?: string; readonly port?: string | undefined }

/** `fetch` would make another Host header of some of these. */
async function ask(path: string, { host, method = 'GET', port = service.urls.links }: Asked) {
  const sent = request(`${port}${path}`, {
    method,
    setHost: false,
    headers: { ...(host !== null && { host }), ...(method === 'POST' && { 'content-length': '0' }) },
  })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) }
}

const pathOf = (url: string): string => new URL(url).pathname

test('links of three apps open at their own domain, and nowhere else', async () => {
  const emails = [await receive({}), await receive({}, ofGlobex.key), await receive({}, ofInitech.key)]
  const hosts = [base, 'links.globex.example', 'go.initech.example']
  assert.deepEqual(
    emails.map(({ url }) => new URL(url).origin),
    hosts.map((host) => `https://${host}`),
  )
  for (const [n, { text: words, url }] of emails.entries()) {
    assert.ok(words.includes(`opens a page on ${hosts[n]}`), words)
    for (const host of hosts)
      for (const method of ['GET', 'POST']) {
        const { body, headers, status } = await ask(pathOf(url), { host, method })
        if (host === hosts[n]) assert.equal(status, method === 'GET' ? 200 : 303, host)
        else assert.deepEqual([status, body, headers.location], [404, unknown, undefined], `${url} at ${host}`)
      }
  }
  // As browsers and proxies write a host.
  for (const host of [
    'LINKS.Globex.example',
    'links.globex.example:443',
    'links.globex.example:',
    'links.globex.example.',
  ])
    assert.equal((await ask(pathOf(emails[1]?.url ?? ''), { host })).status, 200, host)
})

const unknown = unknownPage(languageOf('en')).body

test('a proxy that sends no Host header of its client reaches the links of the service alone', async () => {
  const [own, ofApp] = [await receive({}), await receive({}, ofGlobex.key)]
  for (const host of ['127.0.0.1:4021', 'localhost', '[::1]:4021', '10.0.0.7', 'postern_links', 'postern:4021'])
    assert.deepEqual(
      [(await ask(pathOf(own.url), { host })).status, (await ask(pathOf(ofApp.url), { host })).status],
      [200, 404],
      host,
    )
})

test('500 hostile Host headers: nothing of any app, nothing to read', async () => {
  const paths = [...(await Promise.all([receive({}), receive({}, ofGlobex.key)])), { url: `https://${base}/` }].map(
    ({ url }) => pathOf(url),
  )
  const [label, name] = ['a'.repeat(63), 'links.globex.example']
  const hostile = [
    ...['evil.example', `${name}.evil.example`, `evil.${name}`, `evil-${name}`, 'globex.example'],
    ...[`${name}..`, `.${name}`, `${name}:443:443`, `${name}:port`, `${name}:999999`, `${name}/`, `/${name}`],
    ...[
      `${name}@evil.example`,
      `evil.example@${name}`,
      `user:${name}@evil.example`,
      `${name}#`,
      `${name}?`,
      `[${name}]`,
    ],
    ...[`https://${name}`, `//${name}`, `${name},evil.example`, `${name} evil.example`, `${name}\tevil`, `"${name}"`],
    ...['*', '*.globex.example', '%6cinks.globex.example', 'links%2eglobex.example', '..', '.', '$host'],
    ...["' or 1=1 --", '{"$ne":""}', '<script>', '$(id)', '../../etc/passwd'],
    ...['xn--lnks-0ra.globex.example', '127.0.0.1.nip.io'],
    ...[`${label}.${label}.${label}.${label}.${label}`, 'a'.repeat(8000), `${'a.'.repeat(4000)}example`],
    ...[':'.repeat(4000), `${':1'.repeat(3000)}x`, '['.repeat(4000), ']'.repeat(4000), '1'.repeat(5000)],
    ...Array.from({ length: 128 }, (_, code) => `${name}${String.fromCharCode(code)}x`),
    ...Array.from({ length: 128 }, (_, code) => `${String.fromCharCode(128 + code)}${name}`),
    ...Array.from({ length: 240 }, (_, n) => `${name.slice(0, n % 19)}${n}${name.slice(n % 19)}`),
  ].filter((host) => !/[\0-\x08\x0a-\x1f\x7f]/.test(host))
  assert.ok(hostile.length >= 500, `${hostile.length}`)
  for (const [n, host] of hostile.entries()) {
    const { body, headers, status } = await ask(paths[n % paths.length] ?? '', { host })
    assert.ok(status === 404 || status === 400, `${status} for ${host}`)
    assert.ok(status === 400 ? /^\{"ok":false/.test(body) : body === '', `${body} for ${host}`)
    assert.equal(headers.location, undefined)
  }
})

test('links that were sent stay open when the domain of the app changes', async () => {
  const { app, key } = await newApp('moving')
  const hostOf = async (change: Partial<AppSettings>) => {
    const settings = { ...testSettings, hostedLinks: 'always' as const, ...change }
    await service.store.updateApp(app.id, { settings }, operator)
    const { url } = await receive({}, key)
    return { url, host: new URL(url).hostname }
  }
  const sent = [
    await hostOf({ linkDomain: 'a.moving.example' }),
    await hostOf({ linkDomain: 'a.moving.example', useLinkDomain: true }),
    await hostOf({ linkDomain: 'b.moving.example', useLinkDomain: true }),
    await hostOf({ linkDomain: base, useLinkDomain: true }),
    await hostOf({}),
  ]
  assert.deepEqual(
    sent.map(({ host }) => host),
    [base, 'a.moving.example', 'b.moving.example', base, base],
  )
  for (const { host, url } of sent) assert.equal((await ask(pathOf(url), { host })).status, 200, host)
})

test('a proxy learns which domains get a certificate, and a domain proves where it leads', async () => {
  const isKnown = async (query: string) => (await fetch(`${service.urls.ops}/link-domain${query}`)).status
  await eventually(async () => (await isKnown('?domain=links.globex.example')) === 200)
  for (const query of ['', '?domain=', `?domain=${base}`, '?domain=evil.example', '?domain=LINKS.globex.example'])
    assert.equal(await isKnown(query), 404, query)
  const twice = await isKnown('?domain=links.globex.example&domain=evil.example')
  assert.equal(twice, 404)

  const nonce = newNonce()
  const path = proofPath(nonce)
  const { ring } = service.config
  const { body, status } = await ask(path, { host: 'links.globex.example' })
  assert.equal(status, 200)
  assert.ok(isReachProof(ring, 'links.globex.example', nonce, body))
  assert.ok(!isReachProof(ring, 'go.initech.example', nonce, body))
  assert.ok(!isReachProof(ring, 'links.globex.example', newNonce(), body))
  for (const [host, at] of [
    ['evil.example', path],
    ['links.globex.example', `${path}A`],
    ['links.globex.example', proofPath('a b')],
  ] as const)
    assert.equal((await ask(at, { host })).status, 404, `${host} ${at}`)
  const disabled = { status: 'disabled' as const }
  await service.store.updateApp(ofInitech.app.id, disabled, operator)
  await eventually(async () => (await isKnown('?domain=go.initech.example')) === 404)
  await eventually(async () => (await ask(path, { host: 'go.initech.example' })).status === 404)
})

test('while the database is away, nobody learns anything of a domain', async (t) => {
  const events: string[] = []
  const away = () => Promise.reject(new StoreUnavailable('away'))
  const linkDomains = newLinkDomains({ listLinkDomains: away })
  const emit = ({ kind }: PosternEvent) => void events.push(kind)
  const { config, store } = service
  const links = newLinksListener({ store, ring: config.ring, linkDomains, baseUrl: `https://${base}`, emit })
  atEnd(t, () => links.close())
  const statusOf = async (url: string) =>
    (await links.inject({ url, headers: { host: 'links.globex.example' } })).statusCode
  assert.deepEqual([await statusOf('/'), await statusOf(proofPath(newNonce()))], [404, 503])
  assert.deepEqual(events, ['store_unavailable'])
})
