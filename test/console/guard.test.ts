/**
 * The guards of the console: other sites, other hosts, sessions, scopes, and requests that must change
 * nothing.
 */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, test } from 'node:test'
import { newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { AppId } from '../../src/domain/id.ts'
import { roles } from '../../src/domain/operator/management-token.ts'
import { newSignInCode } from '../../src/domain/operator/sign-in.ts'
import { routes } from '../../src/web/operators/console/pages/routes.ts'
import {
  cookieOf,
  isFrame,
  newCode,
  newVisitor,
  newWebhook,
  signIn,
  signInMany,
  startBusyConsole,
} from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { newSender, refusalsOf, startTestService, testSettings } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startBusyConsole({ after })
const { store } = service
const admin = await signIn(service)
const admins = await signInMany(service)
const base = new URL(service.urls.console ?? '')

let asked = 0

/** `fetch` does not send these headers. */
const statusWith = (method: string, path: string, headers: Record<string, string>) =>
  new Promise<number>((resolve, reject) => {
    const sent = {
      accept: 'text/html',
      cookie: cookieOf(admins[asked++ % admins.length] ?? admin),
      ...headers,
    }
    const { hostname, port } = base
    httpRequest({ hostname, port, path, method, headers: sent }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })

const failed = await service.find('nobody@example.com')
const [refusal] = await refusalsOf(store, service.app.id)
const message = await newWebhook(service)
const pathOf = (path: string): string =>
  path
    .replace(':app', 'acme')
    .replace(':system', 'kratos')
    .replace(':email', failed)
    .replace(':request', refusal?.requestId ?? '')
    .replace(':key', service.keyId)
    .replace(':person', admin.person)
    .replace(':message', message)

const readings = routes.filter(([line]) => line.startsWith('GET')).map(([line]) => pathOf(line.slice(4)))
const changes = routes.filter(([line]) => line.startsWith('POST')).map(([line]) => pathOf(line.slice(5)))

test('pages answer under the names of the console alone: rebinding is refused', async () => {
  const port = base.port
  for (const host of [
    base.host,
    `localhost:${port}`,
    `postern.localhost:${port}`,
    'postern.localhost',
    `[::1]:${port}`,
    `127.0.0.2:${port}`,
  ])
    assert.equal(await statusWith('GET', '/', { host }), 200, host)
  for (const host of [
    'evil.test',
    `evil.test:${port}`,
    '127.0.0.1.evil.test',
    'localhost.evil.test',
    'postern.localhost.evil.test',
    `x@localhost:${port}`,
    'LOCALHOST.evil',
  ])
    for (const path of ['/', '/sign-in', '/live?topic=service'])
      assert.ok([403, 400].includes(await statusWith('GET', path, { host })), `${host} ${path}`)
})

test('a request that may change something comes from the console itself, or is refused', async () => {
  const own = base.origin
  const tries: [Record<string, string>, boolean][] = [
    [{ 'sec-fetch-site': 'same-origin', origin: own }, true],
    [{ 'sec-fetch-site': 'same-origin' }, true],
    [{ origin: own }, true],
    [{}, false],
    [{ 'sec-fetch-site': 'same-site', origin: own }, false],
    [{ 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }, false],
    [{ 'sec-fetch-site': 'none' }, false],
    [{ origin: 'null' }, false],
    [{ origin: 'https://evil.test' }, false],
    [{ origin: `http://127.0.0.1:${Number(base.port) + 1}` }, false],
    [{ 'sec-fetch-site': 'same-origin', origin: 'https://evil.test' }, false],
  ]
  for (const [headers, allowed] of tries) {
    const status = await statusWith('POST', '/find', { host: base.host, ...headers })
    assert.equal(status, allowed ? 404 : 403, JSON.stringify(headers))
  }
  for (const path of [...changes, '/sign-in', '/sign-out', '/account/passkeys', '/sign-in/passkey'])
    assert.equal(await statusWith('POST', path, { host: base.host, 'sec-fetch-site': 'cross-site' }), 403, path)
})

test('reading changes nothing: every page twice leaves apps, keys, people and the audit as they were', async () => {
  const state = async () => {
    const emails = (await store.listEmails({ limit: 200 })).items.map(
      ({ id, attempts, nextAttemptAt, trail, ...rest }) => ({ id, app: rest.app }),
    )
    return JSON.stringify([
      await store.listApps(),
      (await store.listKeys(service.app.id)).map(({ lastUsedAt: _, ...key }) => key),
      (await store.listPeople()).map(({ lastSeenAt: _, ...person }) => person),
      await store.listTokens(),
      (await store.listAudit({ limit: 200 })).items,
      emails,
    ])
  }
  const visitor = newVisitor(service, admins)
  const before = await state()
  const queries = ['', '?confirm=retry', '?confirm=delete', `?revoke=${service.keyId}`, '?done=saved']
  for (const path of [...readings, ...readings]) {
    for (const query of queries) {
      const answer = await visitor.get(`${path}${query}`)
      assert.equal(answer.status, 200, `${path}${query}`)
      assert.doesNotMatch(await answer.text(), /\b(undefined|NaN)\b|\[object /, `${path}${query}`)
    }
  }
  for (const path of changes) assert.ok([404, 200].includes((await visitor.get(path)).status), path)
  assert.equal(await state(), before)
})

test('only admins of the whole service can delete an app; others see no button for it', async () => {
  const paused = await store.createApp('paused', testSettings, operator, 'disabled')
  const path = '/apps/paused/settings?confirm=delete'
  const read = async (signed: typeof admin) => (await newVisitor(service, signed).get(path)).text()
  assert.match(await read(admin), /Delete the app/)
  const ofApp = await read(await signIn(service, 'admin', [paused?.id as AppId]))
  assert.match(ofApp, /paused/)
  assert.doesNotMatch(ofApp, /Delete the app/)
})

test('nobody is let in without a session; the page that was asked for comes after the sign-in', async () => {
  const stranger = newVisitor(service, null)
  for (const path of readings) {
    const answer = await stranger.get(path)
    assert.equal(answer.status, 303, path)
    assert.ok(answer.headers.get('location')?.startsWith('/sign-in'), path)
  }
  for (const path of changes) {
    const answer = await stranger.post(path, { name: '"><b>typed' })
    assert.equal(answer.status, 401, path)
    const page = await answer.text()
    assert.match(page, /nothing was saved/, path)
    assert.ok(page.includes('name="name" value="&quot;&gt;&lt;b&gt;typed"'), 'what was typed is kept')
  }
  assert.equal((await stranger.get('/live?topic=service')).status, 401)
  assert.equal(
    (await stranger.get('/emails?state=failed')).headers.get('location'),
    '/sign-in?to=%2Femails%3Fstate%3Dfailed',
  )
  for (const cookie of [
    'postern=',
    'postern=pss_x',
    `postern=${admin.secret.slice(0, -1)}${admin.secret.endsWith('0') ? '1' : '0'}`,
    `postern=${service.key}`,
    `other=${admin.secret}`,
  ])
    assert.equal((await stranger.get('/', { cookie })).status, 303, cookie)
})

test('a code signs in once, by the press of a button, and leads on to this console alone', async () => {
  const stranger = newVisitor(service, null)
  for (const [to, expected] of [
    ['/emails?state=failed', '/emails?state=failed'],
    ['//evil.test', '/'],
    ['/\\evil.test', '/'],
    ['https://evil.test', '/'],
    ['/sign-in', '/'],
    ['/☃', '/'],
    ['/\u0001', '/'],
    ['', '/'],
  ] as const) {
    const code = await newCode(service)
    await stranger.get(`/sign-in?code=${code}`)
    const answer = await stranger.post('/sign-in', { code: ` ${code}\n`, to }) // as it was pasted
    assert.equal(answer.status, 303, to)
    assert.equal(answer.headers.get('location'), expected)
    const cookie = answer.headers.get('set-cookie') ?? ''
    assert.match(cookie, /^postern=pss_\w{49}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/)
    assert.equal((await stranger.get('/', { cookie: cookie.split(';')[0] ?? '' })).status, 200)
    const again = await stranger.post('/sign-in', { code })
    assert.equal(again.status, 403)
    assert.match(await again.text(), /This code is unknown, used or expired/)
    assert.equal(again.headers.get('set-cookie'), null)
  }
})

test('a link that is used by two at once begins one session', async () => {
  const code = await newCode(service)
  const stranger = newVisitor(service, null)
  const answers = await Promise.all(Array.from({ length: 6 }, () => stranger.post('/sign-in', { code })))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 403, 403, 403, 403, 403])
})

test('a session ends: by signing out, by an admin, when its person is disabled, and by time', async (t) => {
  const status = async (signed: typeof admin) => (await newVisitor(service, signed).get('/')).status
  const [one, two, three] = [await signIn(service), await signIn(service), await signIn(service)]
  const out = await newVisitor(service, one).post('/sign-out')
  assert.match(out.headers.get('set-cookie') ?? '', /^postern=; .*Max-Age=0/)
  assert.equal(await status(one), 303)
  const session = (await store.listSessions()).find(({ person }) => person.name === two.name)
  await newVisitor(service, admin).post(`/settings/sessions/${session?.id}/end`)
  assert.equal(await status(two), 303)
  await newVisitor(service, admin).post(`/settings/people/${three.person}`, { disabled: 'yes' })
  assert.equal(await status(three), 303)
  assert.equal(await status(admin), 200)
  const other = await startTestService(t, { isDev: false, roles: new Set(['console', 'api']) })
  const idle = newVisitor(other, await signIn(other))
  const hourMs = 3_600_000
  for (const [hours, expected] of [
    [11.9, 200],
    [12.1, 303],
  ] as const) {
    other.advance(hours * hourMs)
    assert.equal((await idle.get('/')).status, expected, `${hours} hours without use`)
  }
  const left = newVisitor(other, await signIn(other)) // a page that is left open refreshes itself
  for (const expected of [200, 200, 303]) {
    other.advance(5 * hourMs)
    assert.equal((await left.get('/', { 'postern-refresh': 'yes' })).status, expected)
    const stream = await left.get('/live?topic=service')
    assert.equal(stream.status, expected === 200 ? 200 : 401)
    await stream.body?.cancel()
  }
})

test('all other sessions can be ended where there is another one', async (t) => {
  const other = await startTestService(t, { isDev: false, roles: new Set(['console', 'api']) })
  const visitor = newVisitor(other, await signIn(other))
  const offersIt = async () => (await (await visitor.get('/settings/sessions')).text()).includes('End all others')
  assert.equal(await offersIt(), false)
  await signIn(other)
  assert.equal(await offersIt(), true)
  const ended = await visitor.post('/settings/sessions/others/end')
  assert.equal(ended.headers.get('location'), '/settings/sessions?done=sessions_ended')
  assert.equal((await visitor.get('/')).status, 200, 'the current session continues')
  assert.equal(await offersIt(), false)
})

test('a member of one app sees nothing of others: they are answered like apps that do not exist', async () => {
  const member = newVisitor(service, await signIn(service, 'operator', [service.app.id]))
  const foreign = await service.find('dan@example.com')
  const paths = [
    '/apps/SLUG',
    '/apps/SLUG/links',
    '/apps/SLUG/look',
    '/apps/SLUG/keys',
    '/apps/SLUG/settings',
    '/emails?app=SLUG',
  ]
  const plain = (text: string, slug: string) => text.replaceAll(slug, 'X').replace(/data-now="\d+"/, '')
  for (const path of paths) {
    const [there, absent] = [
      await member.get(path.replace('SLUG', 'shop')),
      await member.get(path.replace('SLUG', 'none')),
    ]
    assert.equal(there.status, 404, path)
    assert.equal(plain(await there.text(), 'shop'), plain(await absent.text(), 'none'), path)
  }
  assert.equal((await member.get(`/emails/${foreign}`)).status, 404)
  for (const path of ['/', '/apps', '/emails', '/delivery', '/audit']) {
    const page = await (await member.get(path)).text()
    assert.doesNotMatch(page, /shop|Shop/, path)
    assert.match(page, /<h1>/, path)
  }
  assert.equal((await member.post('/apps/shop/keys', { name: 'mine' })).status, 404)
  assert.equal((await member.post('/apps/acme/settings', { name: 'Other', 'from-address': 'x@evil.test' })).status, 403)
  for (const path of ['/settings/people', '/settings/tokens', '/settings/sessions'])
    assert.equal((await member.get(path)).status, 403, path)
})

test('a role sees only what it may change', async () => {
  for (const role of roles) {
    const visitor = newVisitor(service, await signIn(service, role))
    const keys = await (await visitor.get('/apps/acme/keys')).text()
    assert.equal(keys.includes('Create a key'), role !== 'reader', role)
    assert.equal((await visitor.post('/apps/acme/keys', { name: `of ${role}` })).status, role === 'reader' ? 403 : 201)
    assert.equal(
      (await visitor.post('/new-app', { name: 'New', from: 'a@new.test' })).status,
      role === 'admin' ? 303 : 403,
    )
    assert.equal((await (await visitor.get('/settings')).text()).includes('People'), role === 'admin')
    if (role === 'admin')
      await store.updateApp((await store.findApp('new'))?.id ?? service.app.id, { status: 'disabled' }, operator)
  }
})

test('every answer has the headers that keep other sites out', async () => {
  const visitor = newVisitor(service, admins)
  for (const path of [...readings, '/sign-in', '/nope']) {
    const { headers } = await visitor.get(path)
    if (headers.get('location') !== null) continue
    const policy = headers.get('content-security-policy') ?? ''
    if (isFrame(path)) assert.match(policy, /default-src 'none'.*sandbox/)
    else {
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'/, path)
      assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'/, path)
      assert.doesNotMatch(policy, /unsafe/)
    }
    assert.equal(headers.get('referrer-policy'), 'same-origin', path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    assert.equal(headers.get('cache-control'), 'no-store', path)
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin', path)
  }
})

test('a fault of ours is answered 500, and the log says more under the id of the request', async (t) => {
  const other = await startTestService(t, { isDev: false, roles: new Set(['console', 'api']) })
  const visitor = newVisitor(other, await signIn(other))
  t.mock.method(other.store, 'listPeople', () => Promise.reject(new TypeError('a fault of ours')))
  const answer = await visitor.get('/settings/people')
  assert.equal(answer.status, 500)
  const [id = 'none'] = /req_\w+/.exec(await answer.text()) ?? []
  assert.ok(other.log.some((line) => line.includes(id) && line.includes('a fault of ours')))
})

test('a cookie does not open the management API, and a token opens no page', async () => {
  const answer = await fetch(`${base.origin}/v1/apps`, { headers: { cookie: cookieOf(admin) } })
  assert.equal(answer.status, 401)
  const page = await fetch(base, { headers: { authorization: `Bearer ${admin.secret}` }, redirect: 'manual' })
  assert.equal(page.status, 303)
})

test('codes that are tried again and again keep nobody out', async () => {
  const stranger = newVisitor(service, null)
  const tries = await Promise.all(
    Array.from({ length: 80 }, () => stranger.post('/sign-in', { code: newSignInCode() })),
  )
  assert.deepEqual(new Set(tries.map(({ status }) => status)), new Set([403, 429]))
  assert.equal((await stranger.post('/sign-in', { code: await newCode(service) })).status, 303)
})

test('one person takes neither all requests nor all searches nor all streams', async () => {
  const visitor = newVisitor(service, await signIn(service, 'reader'))
  const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await visitor.get('/apps')).status))
  assert.ok(statuses.includes(429) && statuses.includes(200), statuses.join(' '))
  const searcher = newVisitor(service, await signIn(service, 'reader'))
  await eventually(async () => {
    const answer = await searcher.post('/find', { q: `someone${asked++}@example.com` })
    return answer.status === 429 && (await answer.text()).includes('at most 60 a minute')
  })
  const watcher = newVisitor(service, await signIn(service, 'reader'))
  const open: Response[] = []
  let tooMany = 0
  while (open.length < 33) {
    const answer = await watcher.get('/live?topic=service')
    if (answer.status === 429) tooMany++
    else open.push(answer)
  }
  assert.ok(tooMany > 0, 'streams have a rate')
  assert.deepEqual(
    open.map(({ status }) => status),
    [...Array(32).fill(200), 503],
  )
  await Promise.all(open.map((each) => each.body?.cancel()))
  assert.equal((await newVisitor(service, admin).get('/')).status, 200, 'others are answered')
})

test('a key that leaked is found by itself, in its own scope alone', async () => {
  const whole = newVisitor(service, await signIn(service, 'reader'))
  const member = newVisitor(service, await signIn(service, 'reader', [service.app.id]))
  const found = await whole.post('/find', { q: service.shop.key })
  assert.equal(found.headers.get('location'), `/apps/shop/keys?revoke=${service.shop.keyId}#confirm`)
  assert.equal((await member.post('/find', { q: service.shop.key })).status, 404)
  assert.equal((await member.post('/find', { q: service.key })).status, 303)
  assert.equal((await whole.post('/find', { q: newDeliveryKey() })).status, 404)
})

test('a search by a part of a name leads to the only app that has it, and lists several', async () => {
  const visitor = newVisitor(service, await signIn(service, 'reader'))
  await newSender(service, 'lamps-north', { ...testSettings, name: 'Lamps North' })
  await newSender(service, 'lamps-south', { ...testSettings, name: 'Lamps South' })
  const one = await visitor.post('/find', { q: 'lamps s' })
  assert.equal(one.headers.get('location'), '/apps/lamps-south')
  const several = await visitor.post('/find', { q: 'lamps' })
  assert.equal(several.status, 200)
  const text = await several.text()
  assert.match(text, /2 apps match/)
  for (const slug of ['lamps-north', 'lamps-south']) assert.ok(text.includes(`href="/apps/${slug}"`), slug)
})

test('nobody takes the own role away, or disables the own person', async () => {
  const signed = await signIn(service)
  const visitor = newVisitor(service, signed)
  for (const fields of [{ role: 'reader' }, { disabled: 'yes' }]) {
    const answer = await visitor.post(`/settings/people/${signed.person}`, fields)
    assert.equal(answer.status, 409)
    assert.match(await answer.text(), /You cannot change your own role/)
  }
  assert.equal((await visitor.get('/settings/people')).status, 200)
})

test('a reader is asked to confirm nothing, and gets no form for a new app', async () => {
  const reader = newVisitor(service, await signIn(service, 'reader'))
  const operator = newVisitor(service, await signIn(service, 'operator'))
  for (const path of [
    `/apps/acme/keys?revoke=${service.keyId}`,
    `/apps/acme/keys?replace=${service.keyId}`,
    '/apps/acme/links?kind=allowedUrls&remove=https://app.acme.test',
    '/apps/acme/settings?confirm=disable',
    '/emails?confirm=retry',
  ]) {
    assert.match(await (await operator.get(path)).text(), /id="confirm"/, path)
    assert.doesNotMatch(await (await reader.get(path)).text(), /id="confirm"/, path)
  }
  const allowed = '/apps/acme/links?kind=allowedUrls&allowed=https://app.acme.test'
  assert.match(await (await operator.get(allowed)).text(), />Undo</)
  assert.doesNotMatch(await (await reader.get(allowed)).text(), />Undo</)
  assert.equal((await reader.get('/new-app')).status, 403)
  const audit = await operator.get('/audit')
  assert.equal(audit.status, 200)
  assert.match(await audit.text(), /Choose an app: only admins can read the audit for the whole service/)
})

test('while the store does not answer, a page says so and its log line says why', async (t) => {
  const dev = await startTestService(t, { roles: new Set(['console']) })
  await dev.store.close()
  const visitor = newVisitor(dev, null)
  const answer = await visitor.get('/apps?x=1')
  assert.equal(answer.status, 503)
  assert.match(await answer.text(), /The database does not answer.*Nothing was changed.*href="\/apps\?x=1">Try again/s)
  const sent = await visitor.post('/apps/acme/settings', { name: 'A "new" name' })
  assert.equal(sent.status, 503)
  const page = await sent.text()
  assert.match(page, /This may or may not have been saved/)
  assert.match(
    page,
    /<form method="post" action="\/apps\/acme\/settings"><input [^>]*name="name" value="A &quot;new&quot; name">/,
  )
  assert.ok(dev.log.some((line) => line.includes('the store failed when asked for a page of the console')))
})
