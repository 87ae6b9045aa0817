/** Hosted links over HTTP: what they open, and everything they refuse. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newLinkDomains } from '../../../src/compose/link-domains.ts'
import { composeRunner } from '../../../src/compose/management.ts'
import type { AppSettings } from '../../../src/domain/app/settings.ts'
import { type EmailType, emailTypes } from '../../../src/domain/request/email-kinds.ts'
import type { PosternEvent } from '../../../src/observe/events.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { languageOf } from '../../../src/templates/locales/locales.ts'
import { expiredPage } from '../../../src/templates/pages/hosted-page.ts'
import { newLinksListener } from '../../../src/web/links/links-listener.ts'
import { type HostedEmail, linksBaseUrl, press, pressedHeaders, startHostedLinks } from '../../support/hosted-links.ts'
import { deleteApp, operator } from '../../support/operator.ts'
import { startTestService, testSettings, validBody } from '../../support/service.ts'
import { atEnd } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const { service, receive, visit, newApp } = await startHostedLinks({ after })
let serial = 0

test('the email carries a link to our page, says which host that is, and holds no other', async () => {
  const email = await receive({ url: 'https://app.acme.test/auth?token=secret-token' })
  assert.match(email.url, /^https:\/\/links\.acme\.test\/acme\/[\w-]+$/)
  for (const part of [email.text, email.html]) {
    assert.ok(part.includes(email.url))
    assert.doesNotMatch(part, /secret-token/)
    assert.match(part.replace(/<[^>]+>/g, ''), /opens a page on links\.acme\.test/)
  }
})

for (const type of emailTypes) {
  test(`a destination of its own for ${type}: the request’s token, and nothing else`, async () => {
    const destination = `acme://open/${type}`
    const { key } = await newApp(`own-${serial++}`, {
      linkDestinations: { [type]: destination } as Partial<Record<EmailType, string>>,
    })
    const email = await receive(
      { type, organisationName: 'Blue', url: 'https://app.acme.test/x?token=a%26b#part' },
      key,
    )
    const page = await (await visit(email.url)).text()
    assert.ok(page.includes(`href="${destination}?token=a%26b"`), page)
  })
}

test('row 47: GET and HEAD are inert: no redirect, no form sent, however often, by whatever follows links', async () => {
  const email = await receive({})
  for (let i = 0; i < 5; i++) {
    const page = await visit(email.url)
    assert.equal(page.status, 200)
    const text = await page.text()
    assert.doesNotMatch(text, /token=abc/, 'the destination is not in the page')
    assert.deepEqual(text.match(/href="[^"]*"/g) ?? [], [], 'nothing for a crawler to follow')
    const head = await visit(email.url, 'HEAD')
    assert.equal(head.status, 200)
    assert.equal(await head.text(), '')
  }
})

test('a POST that nobody pressed a button for opens nothing, and uses nothing up', async () => {
  const email = await receive({ url: 'https://app.acme.test/auth?token=a' })
  const others: readonly Partial<Record<keyof typeof pressedHeaders, string>>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-mode': 'cors' },
    { 'sec-fetch-mode': 'no-cors' },
    { 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-dest': 'empty' },
  ]
  for (const other of others) {
    const headers = { ...pressedHeaders, ...other }
    const answer = await visit(email.url, 'POST', headers)
    const text = await answer.text()
    assert.deepEqual([answer.status, answer.headers.get('location')], [200, null], JSON.stringify(headers))
    assert.match(text, /<form method="post">/, 'the page with its button')
  }
  assert.equal((await visit(email.url, 'POST', {})).status, 303, 'old browsers send none of these headers')
  assert.equal((await visit(email.url, 'POST')).status, 303)
})

test('the button of an https link answers 303 to the exact destination', async () => {
  const email = await receive({ url: 'https://app.acme.test/auth?token=a%26b#top' })
  const pressed = await visit(email.url, 'POST')
  assert.equal(pressed.status, 303)
  assert.equal(pressed.headers.get('location'), 'https://app.acme.test/auth?token=a%26b#top')
  assert.equal(pressed.headers.get('referrer-policy'), 'no-referrer')
  assert.equal(pressed.headers.get('cache-control'), 'no-store')
})

test('the button of an app link is a plain link; a POST to it leads nowhere', async () => {
  const email = await receive({ url: 'acme://auth/magic?token=a%7Cb' })
  const page = await (await visit(email.url)).text()
  assert.match(page, /<a class="button" href="acme:\/\/auth\/magic\?token=a%7Cb">/)
  assert.doesNotMatch(page, /<form/)
  assert.equal((await visit(email.url, 'POST')).headers.get('location'), null)
})

test('every header, on every page', async () => {
  const email = await receive({})
  const pages = [
    await visit(email.url),
    await visit(email.url, 'HEAD'),
    await visit(`${email.url}x`),
    await visit(`${linksBaseUrl}/`),
  ]
  for (const page of pages) {
    const header = (name: string) => page.headers.get(name) ?? ''
    assert.equal(header('cache-control'), 'no-store')
    assert.equal(header('referrer-policy'), 'no-referrer')
    assert.equal(header('x-content-type-options'), 'nosniff')
    assert.match(header('x-robots-tag'), /noindex/)
    const directives = new Map(
      header('content-security-policy')
        .split('; ')
        .map((directive) => [directive.split(' ')[0], directive]),
    )
    assert.equal(directives.get('default-src'), "default-src 'none'")
    assert.match(directives.get('style-src') ?? '', /^style-src 'sha256-[A-Za-z0-9+/=]{44}'$/)
    assert.equal(directives.get('frame-ancestors'), "frame-ancestors 'none'")
    assert.equal(directives.get('base-uri'), "base-uri 'none'")
    assert.ok(directives.has('form-action') && !directives.has('script-src'))
    assert.doesNotMatch(header('content-security-policy'), /unsafe|\*|https:(?!\/\/)/)
    assert.ok((await page.text()).length < 10_240)
  }
})

test('row 47: expired is 410 with advice; a page never outlives its link', async (t) => {
  const newEmailUrl = 'https://app.acme.test/sign-in'
  const timed = await startTestService(t, { linksBaseUrl, settings: { hostedLinks: 'always', newEmailUrl } })
  await timed.post(validBody({ to: 'late@example.com' }, timed.store.now()))
  const email = await eventually(async () => {
    const response = await fetch(`${timed.urls.inbox}/api/inbox/latest`)
    return response.status === 200 ? ((await response.json()) as HostedEmail) : null
  })
  const url = email.url.replace(linksBaseUrl, timed.urls.links ?? '')
  assert.equal((await fetch(url)).status, 200)
  timed.advance(900_000)
  for (const method of ['GET', 'POST']) {
    const page = await fetch(url, { method, redirect: 'manual' })
    assert.equal(page.status, 410)
    const text = await page.text()
    assert.match(text, /has expired.*<time datetime="[-\d]+T.*Z">.* UTC<\/time>.*ask for a new email/s)
    assert.match(text, /<a class="button" href="https:\/\/app\.acme\.test\/sign-in"[^>]*>Open Acme<\/a>/)
  }
})

test('without a page for a new email, the button of an expired link opens that for devices without the app', () => {
  const buttonOf = (settings: Partial<AppSettings>) => {
    const { body } = expiredPage(languageOf('en'), { ...testSettings, ...settings }, 0)
    return /class="button" href="([^"]*)"/.exec(body)?.[1]
  }
  const [fallbackUrl, newEmailUrl] = ['https://acme.test/get', 'https://acme.test/sign-in']
  assert.deepEqual(
    [buttonOf({ fallbackUrl, newEmailUrl }), buttonOf({ fallbackUrl }), buttonOf({})],
    [newEmailUrl, fallbackUrl, undefined],
  )
})

test('row 47: forged, cut, under another app’s slug or an unknown one: one neutral 404, byte for byte', async () => {
  const email = await receive({})
  await newApp('neighbour')
  const sealed = email.url.split('/').at(-1) ?? ''
  const urls = [
    `/acme/${sealed.slice(0, -1)}`,
    `/acme/${sealed}A`,
    `/neighbour/${sealed}`,
    `/nobody/${sealed}`,
    `/${service.app.id}/${sealed}`,
    '/acme/x',
    '/acme',
    '/',
    '/a/b/c',
    `/acme/${sealed}/`,
  ]
  const bodies = new Set<string>()
  for (const path of urls) {
    for (const method of ['GET', 'POST']) {
      const page = await visit(`${linksBaseUrl}${path}`, method)
      assert.equal(page.status, 404, `${method} ${path}`)
      bodies.add(await page.text())
    }
  }
  assert.equal(bodies.size, 1)
})

test('at each view the app is judged again: disabled, deleted, or no longer allowed is 404', async () => {
  const { app, key } = await newApp('judged')
  const email = await receive({}, key)
  const status = async () => (await visit(email.url)).status
  assert.equal(await status(), 200)
  await service.store.updateApp(app.id, { status: 'disabled' }, operator)
  assert.equal(await status(), 404)
  await service.store.updateApp(app.id, { status: 'active' }, operator)
  assert.equal(await status(), 200)
  await service.store.updateApp(
    app.id,
    {
      settings: { ...app.settings, allowedUrls: ['https://other.acme.test'] },
    },
    operator,
  )
  assert.equal(await status(), 404)
  assert.equal((await visit(email.url, 'POST')).status, 404)
  await service.store.updateApp(app.id, { settings: app.settings }, operator)
  assert.equal(await status(), 200)
  await deleteApp(service.store, app.id)
  assert.equal(await status(), 404)
  await newApp('judged')
  assert.equal(await status(), 404, 'also when another app takes the slug')
})

const misconfigurations: [string, Partial<AppSettings>, string][] = [
  [
    'a destination that is no longer allowed',
    { linkDestinations: { magic_link: 'https://gone.acme.test/x' } },
    'destination_invalid',
  ],
  [
    'a destination with a query',
    { linkDestinations: { magic_link: 'https://app.acme.test/x?y=z' } },
    'destination_invalid',
  ],
  [
    'a destination with a fragment',
    { linkDestinations: { magic_link: 'https://app.acme.test/x#y' } },
    'destination_invalid',
  ],
  ['a destination of an unknown scheme', { linkDestinations: { magic_link: 'other://x' } }, 'destination_invalid'],
]
for (const [name, change, code] of misconfigurations) {
  test(`4 and 7 400: invalid hosted-link configuration: ${name}`, async () => {
    const { key } = await newApp(`bad-${serial++}`, change)
    const answer = await service.post(validBody(), { authorization: `Bearer ${key}` })
    assert.equal(answer.status, 400)
    assert.equal(answer.body.error.code, 'invalid_hosted_link_config')
    assert.equal(answer.body.error.issues?.[0]?.code, code)
  })
}

test('4 and 7 400: invalid hosted-link configuration: no base URL; before 403, after the link’s own rules', async (t) => {
  const bare = await startTestService(t, { settings: { hostedLinks: 'always' } })
  const answer = await bare.post(validBody({ url: 'https://evil.test/?token=x' }))
  assert.equal(answer.body.error.code, 'invalid_hosted_link_config')
  assert.equal(answer.body.error.issues?.[0]?.code, 'base_url_missing')
  assert.equal((await bare.post(validBody({ url: 'https://evil.test/' }))).body.error.code, 'invalid_url')
  const insecure = await startTestService(t, {
    linksBaseUrl: 'http://links.acme.test',
    settings: { hostedLinks: 'always' },
  })
  assert.equal((await insecure.post()).body.error.issues?.[0]?.code, 'base_url_insecure')
})

test('what the allow-list judges is the link of the request, whatever the destination', async () => {
  const { key } = await newApp(`listed-${serial++}`, { linkDestinations: { magic_link: 'acme://auth' } })
  const answer = await service.post(validBody({ url: 'https://evil.test/?token=x' }), {
    authorization: `Bearer ${key}`,
  })
  assert.equal(answer.status, 403)
})

test('the longest link that is accepted can be sealed and opened', async () => {
  const start = 'https://app.acme.test/?token='
  const email = await receive({ url: start + '|'.repeat(8192 - start.length) })
  assert.equal((await visit(email.url)).status, 200)
  const pressed = await visit(email.url, 'POST').catch(() => null)
  if (pressed !== null) assert.equal(pressed.status, 303)
})

test('row 43: hostile settings and names stay text; no link opens a redirect to elsewhere', async () => {
  const { key } = await newApp(`hostile-${serial++}`, {
    name: '<script>alert(1)</script>"',
    branding: { logoUrl: "https://cdn.acme.test/l.png?x;script-src 'unsafe-inline',*" },
  })
  const email = await receive({}, key)
  const page = await visit(email.url)
  assert.doesNotMatch(await page.text(), /<script/)
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /img-src https:\/\/cdn\.acme\.test\/l\.png; form-action/,
  )
  for (const path of ['//evil.test', '/%2f%2fevil.test', '/acme/https://evil.test', '/\\evil.test']) {
    const redirected = await fetch(`${service.urls.links}${path}`, { redirect: 'manual' })
    assert.equal(redirected.headers.get('location'), null)
    assert.equal(redirected.status, 404)
  }
})

test('the sealed part reaches no log', async () => {
  const email = await receive({})
  const sealed = email.url.split('/').at(-1) ?? ''
  await visit(email.url)
  await visit(`${email.url}x`)
  await visit(email.url, 'DELETE')
  assert.ok(!service.log.join('').includes(sealed.slice(0, 40)))
})

test('a base URL with a path: the pages are served below it, and without it for proxies that strip it', async (t) => {
  const own = await startTestService(t, {
    linksBaseUrl: 'https://links.acme.test/go/on',
    settings: { hostedLinks: 'always' },
  })
  await own.post(validBody({ to: 'path@example.com' }))
  const url = await eventually(async () => {
    const response = await fetch(`${own.urls.inbox}/api/inbox/latest?to=path@example.com`)
    return response.status === 200 ? ((await response.json()) as HostedEmail).url : null
  })
  const path = url.replace('https://links.acme.test', '')
  assert.match(path, /^\/go\/on\/acme\//)
  const statusOf = async (where: string, method = 'GET') =>
    method === 'POST'
      ? (await press(`${own.urls.links}${where}`)).status
      : (await fetch(`${own.urls.links}${where}`, { redirect: 'manual' })).status
  assert.equal(await statusOf(path), 200)
  assert.equal(await statusOf(path, 'POST'), 303)
  assert.equal(await statusOf(path.replace('/go/on', '')), 200)
  assert.equal(await statusOf(path.replace('/go/on', '/go')), 404)
})

test('a forged link of a known slug is refused by its seal, without the store', async (t) => {
  const asked: string[] = []
  const { store } = service
  const listener = newLinksListener({
    store: {
      now: store.now,
      findAppBySlug: (slug) => {
        asked.push(slug)
        return store.findAppBySlug(slug)
      },
    },
    ring: service.config.ring,
    linkDomains: newLinkDomains(store),
    baseUrl: linksBaseUrl,
    emit: () => {},
  })
  atEnd(t, () => listener.close())
  const { url } = await receive({})
  const path = url.replace(linksBaseUrl, '')
  const statusOf = async (where: string) =>
    (await listener.inject({ url: where, headers: { host: 'links.acme.test' } })).statusCode
  assert.equal(await statusOf(path), 200)
  assert.equal(asked.length, 1)
  for (let n = 0; n < 20; n++) assert.equal(await statusOf(`${path.slice(0, -4)}${1000 + n}`), 404)
  assert.equal(asked.length, 1, 'forged links reached the store')
  for (let n = 0; n < 20; n++) assert.equal(await statusOf(`/nobody${path.slice(5)}`), 404)
  assert.equal(asked.length, 2, 'an unknown slug is remembered too')
})

test('a link of an app that was deleted opens nothing under the app that took its name at once', async () => {
  const { app, key } = await newApp('taken-over')
  const email = await receive({}, key)
  assert.equal((await visit(email.url)).status, 200)
  await deleteApp(service.store, app.id)
  await newApp('taken-over')
  assert.equal((await visit(email.url)).status, 404)
})

test('a name that was asked for before its app was made is looked up again in time', async (t) => {
  const { key } = await newApp('made-later')
  const email = await receive({}, key)
  let isThere = false
  let nowMs = performance.now()
  t.mock.method(performance, 'now', () => nowMs)
  const store = {
    ...service.store,
    findAppBySlug: (slug: string) => (isThere ? service.store.findAppBySlug(slug) : Promise.resolve(null)),
  }
  const { ring } = service.config
  const views: string[] = []
  const emit = (event: PosternEvent) => void (event.kind === 'link_viewed' && views.push(event.result))
  const listener = newLinksListener({ store, ring, linkDomains: newLinkDomains(store), baseUrl: linksBaseUrl, emit })
  atEnd(t, () => listener.close())
  const ask = async (method: 'GET' | 'POST' = 'GET') => {
    const url = email.url.slice(linksBaseUrl.length)
    return (await listener.inject({ method, url, headers: { host: 'links.acme.test' } })).statusCode
  }
  assert.equal(await ask(), 404)
  isThere = true
  nowMs += 5001
  assert.deepEqual([await ask(), await ask('POST')], [200, 303])
  assert.deepEqual(views, ['unknown', 'opened', 'pressed'])
})

test('a preview has the link that an email would have', async () => {
  const runner = composeRunner(service.config, { store: service.store, version: 'test', user: 'test' })
  const preview = async (settings: object) => {
    const body = { type: 'magic_link', settings } as const
    const shown = await runner.call('app.preview', { params: { app: 'acme' }, body })
    return shown.ok ? shown.value.text : JSON.stringify(shown.error)
  }
  assert.match(await preview({}), new RegExp(`${linksBaseUrl}/acme/`))
  assert.match(await preview({ hostedLinks: 'off' }), /https:\/\/app\.acme\.test\//)
})

test('while the database is away, a link says so on a page, and it is no bug', async (t) => {
  const events: string[] = []
  const store = { ...service.store, findAppBySlug: () => Promise.reject(new StoreUnavailable('away')) }
  const { ring } = service.config
  const listener = newLinksListener({
    store,
    ring,
    linkDomains: newLinkDomains(store),
    baseUrl: linksBaseUrl,
    emit: ({ kind }) => void events.push(kind),
  })
  atEnd(t, () => listener.close())
  const answer = await listener.inject({ url: '/acme/go?token=x', headers: { host: 'x' } })
  assert.equal(answer.statusCode, 503)
  assert.equal(answer.headers['retry-after'], '5')
  assert.match(`${answer.headers['content-type']}`, /^text\/html/)
  assert.deepEqual(events, ['store_unavailable'])
})
