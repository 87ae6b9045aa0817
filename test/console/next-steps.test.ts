/** Pages say what is true now, and lead to a next step that works. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { noReply } from '../../src/domain/delivery/reply.ts'
import type { AppId, EmailId } from '../../src/domain/id.ts'
import { shortenId } from '../../src/domain/id.ts'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, newVisitor, signIn, signInMany, startBusyConsole, useSession } from '../support/console.ts'
import { lacking } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { newSender, refusalsOf, send, startTestService, testSettings, validBody } from '../support/service.ts'

const service = await startBusyConsole({ after })
const visitor = newVisitor(service, await signInMany(service))

const readText = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ')

const read = async (path: string): Promise<string> => readText(await (await visitor.get(path)).text())

test('the request that is shown beside a new key is accepted, whatever the app allows', async () => {
  const allowLists = [
    { allowedUrls: ['https://one.test'] },
    { allowedUrls: ['https://one.test/login'] },
    { allowedUrls: ['https://one.test/login/'] },
    { allowedUrls: ['https://one.test/auth/*'] },
    { allowedUrls: ['https://*.one.test/auth'] },
    { allowedUrls: [], allowLocalhost: true },
  ]
  for (const [n, allowList] of allowLists.entries()) {
    await newSender(service, `list-${n}`, { ...testSettings, ...allowList })
    const page = readText(await (await visitor.post(`/apps/list-${n}/keys`, { name: 'production' })).text())
    const [, key = ''] = /Bearer (pst_\w+)/.exec(page) ?? []
    const [, body = ''] = /-d '(\{[^']*\})'/.exec(page) ?? []
    const answer = await send(service.apiUrl, body.replace('YOUR-ADDRESS', 'ada@example.com'), {
      authorization: `Bearer ${key}`,
    })
    assert.equal(answer.status, 202, `${JSON.stringify(allowList)}: ${body}`)
  }
})

test('the answer to a refused form does not fetch itself again: its address is for forms alone', async () => {
  const address = '/apps/acme/test-email'
  assert.equal((await visitor.get(address)).status, 404)
  const refused = await visitor.post(address, { to: 'nobody', type: 'magic_link' })
  assert.equal(refused.status, 400)
  assert.doesNotMatch(await refused.text(), /data-live|id="live"/)
  assert.match(await (await visitor.get('/apps/acme')).text(), /data-live="service"/)
})

test('mail of a disabled app has no next attempt, and cannot be retried', async () => {
  const held = await service.find('later9@example.com')
  const deferred = await service.find('later1@example.com')
  for (const path of [`/emails/${held}`, '/emails?app=old-shop', '/apps/old-shop']) {
    const page = await read(path)
    assert.match(page, /held: the app is disabled/, path)
    assert.doesNotMatch(page, /next attempt|Retry now/, path)
  }
  // Once it is due, it is queued.
  await service.store.retryEmail(held as EmailId, operator)
  assert.equal((await service.store.findEmail(held as EmailId))?.state, 'queued')
  assert.match(await read(`/emails/${held}`), /queued .* held: the app is disabled/)
  assert.match(await read('/emails?app=old-shop'), /queued held: the app is disabled/)
  assert.match(await read(`/emails/${deferred}`), /Retry now.*next attempt (in \d|now)/)
})

test('every tab of a disabled app says that it is disabled, and offers to enable it; no test email is offered', async () => {
  for (const tab of ['', '/links', '/hosted-links', '/look', '/keys', '/settings']) {
    const html = await (await visitor.get(`/apps/old-shop${tab}`)).text()
    assert.match(readText(html), /This app is disabled\. Its keys are refused/, tab)
    assert.equal(html.match(/>Enable</g)?.length, 1, tab)
    assert.doesNotMatch(html, /action="[^"]*test-email"/, tab)
    assert.doesNotMatch(await read(`/apps/acme${tab}`), /is disabled/, tab)
  }
  assert.match(await read('/apps/old-shop'), /Its keys are refused, and 1 email is held/)
})

test('an email that was delivered, and one to a mailbox that does not exist, have a next step', async () => {
  const delivered = await read(`/emails/${await service.find('cy@example.com')}`)
  assert.match(delivered, /Not in the mailbox\? Look in the spam folder.* its reply was 250 /)
  const failed = await read(`/emails/${await service.find('nobody@example.com')}`)
  assert.match(failed, /Probably the address is mistyped/)
  assert.doesNotMatch(failed, /If the relay refuses the sender/)
})

test('the page of an email that ended unsent leads to a new one; while it waits, it does not', async (t) => {
  const other = await startTestService(t, { isDev: false, roles: new Set(['api', 'console']) })
  const { store } = other
  const late = { kind: 'failed', reason: 'retries_exhausted', relay: null, reply: noReply('busy') } as const
  const later = {
    kind: 'deferred',
    relay: null,
    ambiguous: false,
    waitMs: 1,
    reply: noReply('busy'),
  } as const
  const reader = newVisitor(other, await signIn(other))
  for (const [outcome, isEnd] of [
    [late, true],
    [{ kind: 'expired' }, true],
    [later, false],
  ] as const) {
    await other.post()
    const [claim = assert.fail()] = (await store.claimDue({ max: 1, perApp: 1, leases: [] })).claims
    await store.recordOutcome(claim, outcome)
    const page = await (await reader.get(`/emails/${claim.emailId}`)).text()
    assert.equal(page.includes('the person must ask the app for a new one'), isEnd, outcome.kind)
  }
})

test('a search for an address says what became of the newest email to it', async () => {
  const { headers } = await visitor.post('/find', { q: 'nobody@example.com' })
  assert.match(
    await read(headers.get('location') ?? ''),
    /The newest email .* failed Not sent: the relay \S+ refused it: the mailbox does not exist/,
  )
})

test('requests that were refused in the last minutes stand in the past tense, beside a link to their counts', async () => {
  const minute = Math.floor(service.store.now() / 60_000)
  const event = 'refused:queue_unavailable'
  await service.store.addActivity([{ app: null, span: 1, minute, event, count: 50 }])
  const html = await (await visitor.get('/')).text()
  assert.match(readText(html), /Requests were refused lately.* were answered 503 in the last 10 minutes/)
  assert.match(html, /href="\/#answers"/)
  assert.match(html, /id="answers"/)
})

test('a key is found by its id as pages shorten it; one that is not found says what to enter', async () => {
  const find = (q: string) => visitor.post('/find', { q })
  const found = (await find(shortenId(service.keyId))).headers.get('location') ?? ''
  assert.equal(found, `/emails?key=${shortenId(service.keyId)}`)
  assert.match(readText(await (await visitor.get(found)).text()), /Sent with the key/)
  const unknown = await visitor.get((await find('key_01zzzzzzzzzzzz')).headers.get('location') ?? '')
  assert.equal(unknown.status, 404)
  assert.match(readText(await unknown.text()), /There is no key .* give the id of a key/)
})

test('a page says what the service is: database, schema, last backup; people of one app have none', async () => {
  await service.store.keepCheck('backup', { bytes: 2_000_000 })
  const about = readText(await (await visitor.get('/settings/about')).text())
  assert.match(
    about,
    /Database SQLite 3\.\S+, [\d.]+ \w+ Disk [\d.]+ \w+ free; the write-ahead log .* is reused Schema \d+ Last backup .*\( ?just now ?, 1\.9 MiB\)/,
  )
  const own = newVisitor(service, await signIn(service, 'reader', [service.app.id]))
  assert.equal((await own.get('/settings/about')).status, 403)
  assert.doesNotMatch(await (await own.get('/settings')).text(), /settings\/about/)
})

test('beside a setting stands who changed it last', async () => {
  const page = async () => readText(await (await visitor.get('/apps/acme/settings')).text())
  const app = await service.store.findApp('acme')
  const change = { version: String(app?.version), recipientPerHour: '77' }
  assert.equal((await visitor.post('/apps/acme/settings', change)).status, 303)
  assert.match(await page(), /per recipient.*Changed by admin \d+, ?just now/i)
  assert.equal((await page()).match(/Changed by/g)?.length, 1)
})

test('the audit names the key that was revoked, and the person whose session was ended', async () => {
  const { store, app } = service
  const made = await store.createKey(
    { app: app.id, hash: hashDeliveryKey(newDeliveryKey()), name: 'ios', expiresAt: null },
    operator,
  )
  assert.ok(made !== null && typeof made === 'object')
  await store.revokeKey(made.id, operator)
  const grace = await signIn(service, 'reader')
  const session = (await store.listSessions()).find(({ person }) => person.id === grace.person)
  await store.endSession(session?.id ?? assert.fail(), operator)
  const audit = await read('/audit')
  assert.match(audit, /revoked the key ios of acme/)
  assert.match(audit, new RegExp(`ended a session of ${grace.name}`))
})

test('somebody who has never signed in is invited; without an app, the form asks for one', async () => {
  const person = await service.store.createPerson({ name: 'Lukas Berg', role: 'reader', apps: null }, operator)
  assert.ok(typeof person === 'object')
  assert.match(await read('/settings/people'), /Lukas Berg reader the whole service invited/)
  assert.match(await read(`/settings/people/${person.id}`), /Disabling signs Lukas Berg out everywhere/)
  for (const [path, fields] of [
    ['/settings/people', { name: 'Mara', role: 'reader' }],
    [`/settings/people/${person.id}`, { role: 'reader' }],
    ['/settings/tokens', { name: 'deploy', role: 'reader', days: '30' }],
  ] as const) {
    const refused = await visitor.post(path, { ...fields, scope: 'apps' })
    assert.equal(refused.status, 400, path)
    const html = await refused.text()
    assert.match(readText(html), /Access to : Choose at least one app\./, path)
    assert.doesNotMatch(html, /at least 1 entry/, path)
  }
})

test('a touch screen is offered no keyboard shortcuts', { skip: lacking('chromium') }, async (t) => {
  const browser = await openBrowser(t)
  for (const isMobile of [false, true]) {
    const context = await browser.newContext({ isMobile, hasTouch: isMobile })
    await useSession(context, consoleAt(service), await signIn(service))
    const page = await context.newPage()
    await page.goto(`${consoleAt(service)}/apps`)
    assert.equal(await page.isVisible('#shortcuts'), !isMobile)
  }
})

test('a row of the list of emails leads to its email, also on a phone', {
  skip: lacking('chromium'),
}, async (t) => {
  const browser = await openBrowser(t)
  for (const width of [1280, 390]) {
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width, height: 900 } })
    await useSession(context, consoleAt(service), await signIn(service))
    const page = await context.newPage()
    await page.goto(`${consoleAt(service)}/emails`)
    const rows = page.locator('tbody tr')
    for (const n of [0, 3]) {
      const address = await rows.nth(n).locator('a').getAttribute('href')
      await rows.nth(n).locator('td').nth(1).click({ force: true })
      assert.equal(new URL(page.url()).pathname, address)
      await page.goBack()
    }
  }
})

test('refusals are said in words', async () => {
  const { requestId, issues } =
    (await refusalsOf(service.store, service.app.id)).find(({ code }) => code === 'url_not_allowed') ?? assert.fail()
  assert.deepEqual(issues, ['url host_differs'])
  assert.match(await read('/apps/acme'), /the app does not allow this host/)
  assert.match(await read(`/refusals/${requestId}`), /the app does not allow this host url host_differs/)
  assert.match(await read('/apps/acme'), /to: [a-z ]+ /)
})

test('the overview counts bounces once there are some', async () => {
  assert.doesNotMatch(await read('/?range=24h'), /Bounced, last hour/)
  const minute = Math.floor(service.store.now() / 60_000) - 1
  await service.store.addActivity([{ app: null, span: 1, minute, event: 'bounced:no_mailbox', count: 3 }])
  assert.match(await read('/?range=7d'), /Bounced, last hour 3 reported after delivery/)
})

test('people of one app see its mail alone, on the overview and in trouble', async () => {
  const limits = { ...testSettings.limits, daily: 1 }
  const full = await newSender(service, 'used-up', { ...testSettings, limits })
  const empty = await newSender(service, 'unused', testSettings)
  const headers = { authorization: `Bearer ${full.key}` }
  assert.equal((await send(service.apiUrl, JSON.stringify(validBody()), headers)).status, 202)
  const open = async (app: AppId, path: string) => {
    const team = newVisitor(service, await signIn(service, 'reader', [app]))
    return readText(await (await team.get(path)).text())
  }
  const stream = await visitor.get('/live?topic=service') // while somebody watches, drawings are shared
  const [theirs, others] = [await open(full.app.id, '/'), await open(empty.app.id, '/')]
  await stream.body?.cancel()
  assert.match(theirs, /used-up has used all of its 1 emails for today/)
  assert.doesNotMatch(others, /used-up/)
  assert.doesNotMatch(theirs, /unused/)
  assert.match(await read('/'), /used-up has used all/)
  assert.match(await read('/apps/used-up'), /used-up has used all/)
  assert.doesNotMatch(await read('/apps/unused'), /used-up/, 'the trouble of one app is not on the page of another')
})

test('only an admin of the whole service is offered a new app', async () => {
  const scoped = newVisitor(service, await signIn(service, 'admin', [service.app.id]))
  const refused = await scoped.get('/new-app')
  assert.equal(refused.status, 403)
  assert.match(await refused.text(), /Only an admin of the whole service can create apps/)
  assert.equal((await visitor.get('/new-app')).status, 200)
})

test('an app without a working key says so, until it has one', async () => {
  const app = await service.store.createApp('keyless', testSettings, operator)
  assert.ok(app)
  const text = /This app has no working key/
  assert.match(await read('/apps/keyless'), text)
  const expired = service.store.now() - 1
  const key = (expiresAt: number | null) => ({
    ...{ app: app.id, hash: hashDeliveryKey(newDeliveryKey()), name: null, expiresAt },
  })
  await service.store.createKey(key(expired), operator)
  assert.match(await read('/apps/keyless'), text)
  await service.store.createKey(key(null), operator)
  assert.doesNotMatch(await read('/apps/keyless'), text)
})

test('attempts that were not made are one entry of the timeline for each reason, with the time of the last', async (t) => {
  const own = await startTestService(t, { isDev: false, roles: new Set(['api', 'console']) })
  const { store } = own
  await own.post(validBody({ to: 'folded@example.com' }))
  const noRelay = 'no relay is available'
  for (const why of [noRelay, noRelay, noRelay, 'the worker is stopping', noRelay]) {
    const { claims } = await store.claimDue({ max: 1, perApp: 1, leases: [] })
    const [claim] = claims
    assert.ok(claim)
    await store.recordOutcome(claim, { kind: 'unattempted', relay: null, reply: noReply(why), waitMs: 1000 })
    own.advance(60_000)
  }
  const [{ id = '' } = {}] = (await store.listEmails({ limit: 1 })).items
  const page = await (await newVisitor(own, await signIn(own)).get(`/emails/${id}`)).text()
  const entries = readText(page).match(/\+\d+ \w+ not tried(?: the last of \d times)? [a-z ]+/g) ?? []
  assert.deepEqual(
    entries.map((entry) => entry.trim().replace(/ (waits|next) .*/, '')),
    [
      '+2 min not tried the last of 3 times no relay is available',
      '+3 min not tried the worker is stopping',
      '+4 min not tried no relay is available',
    ],
  )
})

test('searches one after the other are one entry of the audit; the changes of settings are not', async () => {
  const one = newVisitor(service, await signIn(service))
  for (const name of ['a', 'b', 'c']) await one.post('/find', { q: `${name}@elsewhere.test` })
  assert.match(await read('/audit?group=searches'), /searched for an address, 3 times/)
  for (const wanted of ['yes', 'no']) await visitor.post('/apps/acme/links/codes', { allow: wanted })
  const settings = await read('/audit?group=settings')
  assert.equal(settings.match(/changed One-time codes of acme/g)?.length, 2)
})
