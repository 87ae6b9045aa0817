/** Changes in the console that must not be lost, made twice, or made by somebody who stole a session. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { PersonId } from '../../src/domain/id.ts'
import { freshMs, newSignInCode } from '../../src/domain/operator/sign-in.ts'
import { beginSession, cookieOf, formOf, newCode, newVisitor, signIn, startBusyConsole } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/ports.ts'
import { newSender, refusalsOf, relayTo, startTestService, testSettings, validBody } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const service = await startBusyConsole({ after })
const { store } = service
const [ana, ben] = [await signIn(service), await signIn(service)]
const [first, second] = [newVisitor(service, ana), newVisitor(service, ben)]
/** Each has a rate, which several people share here. */
const signInTwo = async () => newVisitor(service, [await signIn(service), await signIn(service)])
let third = await signInTwo()

const textOf = (html: string): string =>
  html.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

for (const [page, changes, others, saved] of [
  ['settings', { replyTo: 'answers@acme.test' }, { recipientPerHour: '13' }, 'answers@acme.test'],
  ['look', { supportContact: 'help@acme.example' }, { addressLine: 'Acme, 1 Road' }, 'help@acme.example'],
] as const) {
  test(`${page}: what a colleague has saved is not overwritten, also by saving twice`, async () => {
    const path = `/apps/acme/${page}`
    const action = path
    const open = async (visitor: typeof first) => {
      const html = await (await visitor.get(path)).text()
      const version = /name="version" value="(\d+)"/.exec(html)?.[1] ?? ''
      const inputs = [...html.matchAll(/<input id="[\w-]+" name="([\w-]+)"[^>]*? value="([^"]*)"/g)]
      return { version, ...Object.fromEntries(inputs.map(([, name = '', value = '']) => [name, value])) }
    }
    const [own, stale] = [await open(first), await open(second)]
    assert.equal((await first.post(action, { ...own, ...changes })).status, 303)
    const [name = '', value = ''] = Object.entries(others)[0] ?? []
    const refused = await second.post(action, { ...stale, [name]: ` ${value} ` })
    assert.equal(refused.status, 412)
    const html = await refused.text()
    assert.match(html, /Somebody else changed the app in the meantime, so nothing was saved/)
    assert.ok(html.includes(`value="${saved}"`), 'the form shows what the colleague saved')
    assert.match(html, new RegExp(`name="${name}"[^>]* aria-invalid="true"`))
    assert.ok(html.includes(`You entered “${value}”`), 'and what was sent')
    // Saving the form as it now stands.
    const inputs = [...html.matchAll(/<input id="[\w-]+" name="([\w-]+)"[^>]*? value="([^"]*)"/g)]
    const again = Object.fromEntries(inputs.map(([, field = '', text = '']) => [field, text]))
    const version = /name="version" value="(\d+)"/.exec(html)?.[1] ?? ''
    assert.equal((await second.post(action, { version, ...again })).status, 303)
    const { settings } = (await store.findApp('acme')) ?? service.app
    assert.equal(page === 'settings' ? settings.replyTo : settings.supportContact, saved)
  })
}

test('a reload of the answer with a new key makes no other key; a form that was refused may be sent again', async () => {
  const sender = await newSender(service, 'twice', testSettings)
  const path = '/apps/twice/keys'
  const form = formOf(await (await first.get(path)).text(), path)
  assert.equal((await first.post(path, { ...form, name: 'x'.repeat(101), expires: '' })).status, 400)
  assert.equal((await first.post(path, { ...form, name: '', expires: '30' })).status, 201)
  assert.equal((await first.post(path, { ...form, name: '', expires: '30' })).status, 400)
  const keys = await store.listKeys(sender.app.id)
  assert.equal(keys.length, 2)
  const [lifeMs] = keys.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt - store.now()]))
  assert.ok(lifeMs !== undefined && Math.abs(lifeMs - 30 * 86_400_000) < 60_000)
})

test('a reload of the answer with a replaced key makes no other key', async () => {
  const sender = await newSender(service, 'reloaded', testSettings)
  const page = await (await first.get(`/apps/reloaded/keys?replace=${sender.keyId}`)).text()
  const path = `/apps/reloaded/keys/${sender.keyId}/replace`
  const form = { ...formOf(page, path), grace: '3600' }
  assert.equal((await first.post(path, form)).status, 201)
  const reloaded = await first.post(path, form)
  assert.equal(reloaded.status, 400)
  assert.match(await reloaded.text(), /This form was already submitted/)
  assert.equal((await store.listKeys(sender.app.id)).length, 2)
  const anew = formOf(await (await first.get(`/apps/reloaded/keys?replace=${sender.keyId}`)).text(), path)
  assert.equal((await first.post(path, { ...anew, grace: '0' })).status, 201, 'a form that was opened anew does')
})

test('a reload of the answer with a new link makes no other link', async () => {
  const path = `/settings/people/${ben.person}/link`
  const form = formOf(await (await first.get(`/settings/people/${ben.person}`)).text(), path)
  assert.equal((await first.post(path, form)).status, 200)
  assert.equal((await first.post(path, form)).status, 400)
})

test('the command that is shown beside a new key runs nothing of an allowed link', async (t) => {
  const folder = temporaryFolder(t)
  const entry = `https://app.acme.test/';touch$IFS'${folder}/made';'/x`
  await newSender(service, 'quoted', { ...testSettings, allowedUrls: [entry] })
  const answer = await first.post('/apps/quoted/keys', { name: 'production' })
  const shown = textOf(/<pre>(curl [\s\S]*?)<\/pre>/.exec(await answer.text())?.[1] ?? '')
  assert.match(shown, /touch\$IFS/)
  const sent = execFileSync('sh', ['-c', shown.replace(/^curl/, 'printf "%s\\n"')], { encoding: 'utf8' })
  assert.ok(!existsSync(join(folder, 'made')))
  const body = JSON.parse(sent.trimEnd().split('\n').at(-1) ?? '')
  assert.ok(body.url.startsWith(entry), 'and curl gets the link as it is')
  assert.ok(Date.parse(body.expiresAt) > store.now(), 'and a link that has not expired')
})

test('an hour after signing in, a session makes no access that outlives it, and still takes access away', async () => {
  const old = await signIn(service)
  const visitor = newVisitor(service, old)
  service.advance(freshMs + 1000)
  third = await signInTwo() // for the tests below
  const recent = newVisitor(service, await signIn(service))
  const makes = [
    ['/settings/tokens', { name: ' kept ', role: 'admin' }],
    ['/settings/people', { name: ' kept ', role: 'admin' }],
    [`/settings/people/${ben.person}/link`, {}],
    [`/settings/people/${ben.person}`, { role: 'admin' }],
    [`/settings/people/${ben.person}`, { disabled: 'no' }],
    [`/settings/people/${ben.person}`, { disabled: 'no', role: 'admin' }],
  ] as const
  for (const [path, fields] of makes) {
    const answer = await visitor.post(path, fields)
    assert.equal(answer.status, 403, path)
    assert.match(await answer.text(), /Sign out and in again first/)
  }
  for (const [path, fields] of makes)
    assert.ok((await recent.post(path, fields)).status < 400, `${path}, just signed in`)
  for (const made of [await store.listTokens(), await store.listPeople()])
    assert.ok(
      made.some(({ name }) => name === 'kept'),
      'a name is saved without the spaces around it',
    )
  const both = { disabled: 'yes', role: 'operator' }
  assert.equal((await visitor.post(`/settings/people/${ben.person}`, both)).status, 303)
  const { disabledAt, role } = (await store.findPerson(ben.person)) ?? {}
  assert.deepEqual([disabledAt !== null, role], [true, 'admin'], 'the form that disables gives no role')
})

test('nobody makes a sign-in link for the own person', async () => {
  const own = await signIn(service)
  const answer = await newVisitor(service, own).post(`/settings/people/${own.person}/link`)
  assert.equal(answer.status, 409)
})

test('what a page of another site loads by itself is not answered; a link to a page is', async () => {
  const signed = await signIn(service)
  const visitor = newVisitor(service, signed)
  const ask = async (site: string, purpose: string) =>
    (await visitor.get('/apps', { 'sec-fetch-site': site, 'sec-fetch-dest': purpose })).status
  assert.equal(await ask('same-site', 'image'), 403)
  assert.equal(await ask('cross-site', 'iframe'), 403)
  assert.equal(await ask('cross-site', 'empty'), 403)
  assert.equal(await ask('cross-site', 'document'), 200)
  assert.equal(await ask('same-origin', 'empty'), 200)
  assert.equal(await ask('none', 'document'), 200)
  assert.equal(await ask('none', 'empty'), 200)
})

test('one stranger keeps nobody from beginning to sign in by a passkey', async () => {
  const ask = (client: string) =>
    fetch(`${service.urls.console}/sign-in/passkey/options`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': client },
    })
  const strangers = await Promise.all(Array.from({ length: 130 }, () => ask('203.0.113.7')))
  assert.ok(strangers.some(({ status }) => status === 429))
  assert.equal((await ask('198.51.100.1')).status, 200)
  // An IPv6 network is one client.
  const all = () => Promise.all(Array.from({ length: 40 }, (_, n) => ask(`2001:db8:1:2::${n + 1}`)))
  await eventually(async () => (await all()) && (await ask('2001:db8:1:2:ffff::1')).status === 429)
  assert.equal((await ask('2001:db8:1:3::1')).status, 200)
})

test('the owner of a large network keeps nobody from signing in', async () => {
  const post = (path: string, client: string, code = '') =>
    fetch(`${service.urls.console}${path}`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': client },
      body: new URLSearchParams({ code }),
    })
  const addresses = Array.from({ length: 1200 }, (_, n) => `2a00:db8:7:${n.toString(16)}::1`)
  const begun = await Promise.all(addresses.map((client) => post('/sign-in/passkey/options', client)))
  assert.ok(begun.some(({ status }) => status === 429))
  assert.equal((await post('/sign-in/passkey/options', '198.51.100.9')).status, 200)
  const code = newSignInCode()
  const tried = await Promise.all(addresses.slice(0, 400).map((client) => post('/sign-in', client, code)))
  assert.ok(tried.some(({ status }) => status === 429))
  assert.equal((await post('/sign-in', '198.51.100.9', code)).status, 403)
})

test('ceremonies of a person are charged, and passkeys are bounded', async () => {
  const signed = await signIn(service)
  const visitor = newVisitor(service, signed)
  const answers = await Promise.all(Array.from({ length: 40 }, () => visitor.post('/account/passkeys/options')))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 429]))
  const person = signed.person as Parameters<typeof store.removePasskey>[0]
  const add = (n: number) =>
    store.addPasskey({ id: `p${n}`, person, publicKey: 'k', counter: 0, name: `p${n}` }, operator)
  for (let n = 0; n < 20; n++) assert.equal(await add(n), true)
  assert.equal(await add(20), false)
  assert.ok(cookieOf(signed))
})

test('a person sees and removes own passkeys alone', async () => {
  const [one, two] = [await signIn(service), await signIn(service)]
  const add = (id: string, { person }: typeof one) =>
    store.addPasskey({ id, person: person as PersonId, publicKey: 'k', counter: 0, name: `name-${id}` }, operator)
  assert.ok((await add('own-a', one)) && (await add('own-b', one)) && (await add('other', two)))
  const visitor = newVisitor(service, one)
  const remove = (passkey: string) => visitor.post('/account/passkeys/remove', { passkey })
  for (const id of ['own-a', 'other', '']) assert.equal((await remove(id)).status, 303, id)
  const text = await (await visitor.get('/account')).text()
  assert.ok(text.includes('name-own-b') && !text.includes('name-own-a') && !text.includes('name-other'))
  const left = (await store.listPasskeys(null)).map(({ id }) => id)
  assert.deepEqual(
    ['own-a', 'own-b', 'other'].map((id) => left.includes(id)),
    [false, true, true],
  )
})

test('a person sees and ends own sessions alone', async () => {
  const [one, two] = [await signIn(service), await signIn(service)]
  const [own, other] = [one, two].map(({ person }) => person)
  await beginSession(store, own as PersonId)
  const visitor = newVisitor(service, one)
  const of = async (person: unknown) => (await store.listSessions()).filter((session) => session.person.id === person)
  const text = await (await visitor.get('/account')).text()
  const ids = (await of(own)).map(({ id }) => id)
  assert.equal(ids.length, 2)
  const [elsewhere] = ids.filter((id) => text.includes(`/account/sessions/${id}/end`))
  const [foreign] = await of(other)
  for (const id of [elsewhere, foreign?.id, 'ses_none'])
    assert.equal((await visitor.post(`/account/sessions/${id}/end`)).status, 303, String(id))
  assert.deepEqual([(await of(own)).length, (await of(other)).length], [1, 1])
  assert.equal((await visitor.get('/account')).status, 200, 'its own session goes on')
})

test('the delivery page says why a relay does not answer, and of one that answers nothing more', async (t) => {
  const own = await startTestService(t, { isDev: false, relays: [relayTo(await freePort())] })
  const visitor = newVisitor(own, await signIn(own))
  for (let n = 0; n < 4; n++) await own.post(validBody({ to: `a${n}@example.com` }))
  const page = async (of: typeof visitor) => (await of.get('/delivery')).text()
  await eventually(async () => (await page(visitor)).includes('unavailable'))
  assert.match(await page(visitor), /the connection was refused <span class="reply">[^<]*ECONNREFUSED/)
  // Its mail is due, and waits.
  assert.match(await page(visitor), /<dt>Next attempt<\/dt>\s*<dd>when a relay accepts mail</)
  const list = await (await visitor.get('/emails')).text()
  const [email = ''] = /\/emails\/em_\w+/.exec(list) ?? []
  const detail = await (await visitor.get(email)).text()
  assert.match(list, /waits until a relay accepts mail/)
  assert.match(detail, /It was accepted, and waits until a relay accepts mail\./)
  for (const shown of [list, detail, await (await visitor.get('/apps')).text()])
    assert.match(shown, /Nothing has been delivered since/)
  const answering = await page(newVisitor(service, await signIn(service)))
  assert.match(answering, /127\.0\.0\.1:\d+<\/b>/)
  assert.doesNotMatch(answering, /class="reply"/)
})

test('a session keeps at most 200 characters of what the browser calls itself', async () => {
  const code = await newCode(service)
  await newVisitor(service, null).post('/sign-in', { code }, { 'user-agent': `Long ${'x'.repeat(5000)}` })
  const agents = (await store.listSessions()).map(({ agent }) => agent)
  assert.deepEqual(
    agents.filter((agent) => agent.startsWith('Long')).map(({ length }) => length),
    [200],
  )
})

test('a session keeps no character that a terminal obeys, and no address', async () => {
  const agent = 'Hidden\u009b2K\u009d0;x\u009c (+https://bot.test/?a=1; ada@example.com)'
  await newVisitor(service, null).post('/sign-in', { code: await newCode(service) }, { 'user-agent': agent })
  const agents = (await store.listSessions()).map((session) => session.agent)
  assert.deepEqual(
    agents.filter((name) => name.startsWith('Hidden')),
    ['Hidden2K0;x (<link> <address>)'],
  )
})

test('the audit shows up to four values of a change at once, and folds more', async () => {
  const visitor = newVisitor(service, await signIn(service))
  const app = await newSender(service, `audited${Date.now()}`)
  const { limits } = app.app.settings
  await store.updateApp(app.app.id, { settings: { ...app.app.settings, limits: { ...limits, daily: 7 } } }, operator)
  await store.updateApp(app.app.id, { status: 'disabled' }, operator)
  await store.updateApp(app.app.id, { settings: { ...app.app.settings, name: 'Renamed' } }, operator)
  const text = await (await visitor.get(`/audit?app=${app.app.slug}`)).text()
  const entryOf = (done: string) => text.split('<li><time').find((entry) => entry.includes(done)) ?? ''
  assert.match(entryOf('created the app'), /<details><summary>\d+ values/)
  assert.match(entryOf('<ins>Renamed</ins>'), new RegExp(`<del>${app.app.settings.name}</del> → <ins>Renamed</ins>`))
  assert.doesNotMatch(entryOf('disabled <a'), /<details>|<ul/, 'the sentence says it')
  const changed = entryOf('changed Emails a day (UTC) of')
  assert.match(changed, /changed Emails a day \(UTC\) of .*\n<ul class="diff"><li><del>[\d,]+<\/del> → <ins>7<\/ins>/)
  assert.doesNotMatch(changed, /per hour|per minute/, 'values that stay are not listed')
})

test('a daily limit that today has used up already is saved when it is sent again', async () => {
  const sender = await newSender(service, 'limited', testSettings)
  for (const to of ['a@example.com', 'b@example.com'])
    assert.equal(
      (await service.post(validBody({ to }, store.now()), { authorization: `Bearer ${sender.key}` })).status,
      202,
    )
  const path = '/apps/limited/settings'
  const dailyOf = async () => (await store.findApp('limited'))?.settings.limits.daily
  const form = formOf(await (await third.get(path)).text(), path)
  // Faults come before the question.
  const faulty = await (await third.post(path, { ...form, daily: '2', senderAddress: 'nobody' })).text()
  assert.match(faulty, /href="#settings-senderAddress"/)
  assert.doesNotMatch(faulty, /were accepted today, so/)
  assert.doesNotMatch(await (await third.post(path, { ...form, daily: '-5' })).text(), /today, so/)
  const refused = await third.post(path, { ...form, daily: '2' })
  assert.equal(refused.status, 400)
  const html = await refused.text()
  assert.match(html, /2 emails were accepted today, so with this limit every request is refused/)
  assert.equal(await dailyOf(), testSettings.limits.daily)
  const again = formOf(html, path)
  assert.equal(again.confirmed, '2')
  assert.equal((await third.post(path, { ...again, daily: '1' })).status, 400, 'another limit is asked for anew')
  assert.equal((await third.post(path, { ...again, confirmed: '2 ', daily: '2' })).status, 303, 'as it was typed')
  assert.equal(await dailyOf(), 2)
  const fresh = formOf(await (await third.get(path)).text(), path)
  assert.equal((await third.post(path, { ...fresh, daily: '3' })).status, 303, 'a limit that is not used up')
})

test('links to localhost are allowed and refused on the page of links', async () => {
  await newSender(service, 'local', testSettings)
  const allows = async () => (await store.findApp('local'))?.settings.allowLocalhost
  assert.match(await (await third.get('/apps/local/links')).text(), /127\.0\.0\.1 are <b>refused<\/b>/)
  assert.equal((await third.post('/apps/local/links/localhost', { allow: 'yes' })).status, 303)
  assert.equal(await allows(), true)
  const path = '/apps/local/hosted-links'
  const saved = formOf(await (await third.get(path)).text(), path)
  assert.equal((await third.post(path, { ...saved, hostedLinks: 'off' })).status, 303)
  assert.equal(await allows(), true, 'the form of hosted links leaves it alone')
  const tested = await third.post('/apps/local/links/test', { url: 'http://localhost:3000/?token=x' })
  const compared = (await tested.text()).split('Compared with each entry').at(-1) ?? ''
  assert.deepEqual(
    [...compared.matchAll(/<code>([^<]*)<\/code>/g)].slice(0, 2).map(([, entry]) => entry),
    [...testSettings.allowedUrls, 'links to localhost'],
  )
  assert.equal((await third.post('/apps/local/links/localhost', { allow: 'no' })).status, 303)
  assert.equal(await allows(), false)
})

test('a link domain is set on the page of hosted links, and its form leaves the other alone', async () => {
  await newSender(service, 'domained', { ...testSettings, newEmailUrl: 'https://app.acme.test/new' })
  const settings = async () => (await store.findApp('domained'))?.settings
  const [page, path] = ['/apps/domained/hosted-links', '/apps/domained/hosted-links/domain']
  const saved = formOf(await (await third.get(page)).text(), path)
  const refused = await third.post(path, { ...saved, linkDomain: 'https://links.acme.example' })
  assert.equal(refused.status, 400)
  const again = await refused.text()
  assert.match(again, /Link domain<\/a>: Write a domain name alone/)
  assert.match(again, /name="linkDomain"[^>]* value="https:\/\/links\.acme\.example"/)
  assert.match(again, /name="newEmailUrl"[^>]* value="https:\/\/app\.acme\.test\/new"/)
  const sent = { ...saved, linkDomain: 'links.acme.example', useLinkDomain: 'yes' }
  assert.equal((await third.post(path, sent)).status, 303)
  const { linkDomain, newEmailUrl, useLinkDomain } = (await settings()) ?? {}
  assert.deepEqual([linkDomain, useLinkDomain, newEmailUrl], ['links.acme.example', true, 'https://app.acme.test/new'])
  assert.match(await (await third.get(page)).text(), /The pages are served at https:\/\/links\.acme\.example\./)
  const hosted = formOf(await (await third.get(page)).text(), page)
  assert.equal((await third.post(page, { ...hosted, newEmailUrl: '' })).status, 303)
  assert.equal((await settings())?.linkDomain, 'links.acme.example')
})

test('codes are shown and ignored by the button on the page of links, and previewed on the page of the look', async () => {
  await newSender(service, 'coded', testSettings)
  const path = '/apps/coded/links/codes'
  const [links, audit] = ['/apps/coded/links', '/audit']
  for (const wanted of [true, false]) {
    assert.equal((await third.post(path, formOf(await (await third.get(links)).text(), path))).status, 303)
    const { allowCodes, allowLocalhost } = (await store.findApp('coded'))?.settings ?? {}
    assert.deepEqual([allowCodes, allowLocalhost], [wanted, false])
  }
  assert.match(await (await third.get(audit)).text(), /changed One-time codes of/)
  const look = async (code: string) => (await third.get(`/apps/coded/look?type=magic_link&code=${code}`)).text()
  assert.doesNotMatch(await look(''), /246813/)
  assert.match(await look('first'), /246813[\s\S]*Open /)
  assert.equal(formOf(await look('first'), '/apps/coded/test-email').code, 'first')
})

test('the search finds a person by a part of the name, for admins of the whole service alone', async () => {
  const person = await store.createPerson({ name: 'Zoe Quill', role: 'reader', apps: [] }, operator)
  assert.ok(person !== 'name_taken')
  const admin = await third.post('/find', { q: 'quill' })
  assert.equal(admin.headers.get('location'), `/settings/people/${person.id}`)
  await store.createPerson({ name: 'Zed Quill', role: 'reader', apps: [] }, operator)
  const several = await (await third.post('/find', { q: 'quill' })).text()
  assert.match(several, /Zoe Quill[\s\S]*Zed Quill|Zed Quill[\s\S]*Zoe Quill/)
  const limited = newVisitor(service, await signIn(service, 'admin', [service.app.id]))
  assert.equal((await limited.post('/find', { q: 'quill' })).status, 404)
})

test('a page that is not there names likely causes', async () => {
  const ask = async (path: string) => (await third.get(path, { accept: 'text/html' })).text()
  assert.match(await ask('/emails/em_00000000000000000000000000'), /kept for \d+ days/)
  assert.match(await ask('/refusals/req_none'), /newest 100 refused requests of each app/)
  assert.match(await ask('/nothing/here'), /mistyped or old/)
})

test('an entry that was allowed already is not undone', async () => {
  await newSender(service, 'known', { ...testSettings, allowedUrls: ['https://known.example'] })
  const again = await third.post('/apps/known/links/add', { kind: 'allowedUrls', entry: 'known.example' })
  const address = again.headers.get('location') ?? ''
  const page = await (await third.get(address)).text()
  assert.match(page, /This entry was already allowed/)
  assert.doesNotMatch(page, />Undo</)
  const added = await third.post('/apps/known/links/add', { kind: 'allowedUrls', entry: 'new.example' })
  assert.match(await (await third.get(added.headers.get('location') ?? '')).text(), />Undo</)
})

test('an app is made with a bare host, as links are allowed', async () => {
  const form = { name: 'Bare', from: 'auth@bare.example', allowedUrls: 'app.bare.example', slug: '' }
  assert.equal((await third.post('/new-app', form)).status, 303)
  assert.deepEqual((await store.findApp('bare'))?.settings.allowedUrls, ['https://app.bare.example'])
})

test('a setting that is invalid while it is typed leaves the preview as it was saved', async () => {
  const frame = async (query: string) => (await third.get(`/apps/acme/look/email?type=magic_link&${query}`)).text()
  assert.equal(await frame('logoUrl=http%3A%2F%2Fplain.example%2Flogo.png'), await frame(''))
  assert.equal(await frame('in=de&accentColour=blue'), await frame('in=de'))
  assert.match(await frame('logoUrl=https%3A%2F%2Fcdn.example%2Flogo.png'), /cdn\.example/)
})

test('the refused requests for an address are beside its emails', async () => {
  const limits = { ...testSettings.limits, recipientPerHour: 2 }
  const sender = await newSender(service, 'flooded', { ...testSettings, limits })
  const headers = { authorization: `Bearer ${sender.key}` }
  const page = async () => {
    const found = await third.post('/find', { q: 'eve@example.com' })
    return (await third.get(found.headers.get('location') ?? '')).text()
  }
  const post = () => service.post(validBody({ to: 'eve@example.com' }, store.now()), headers)
  await post()
  await post()
  assert.doesNotMatch(await page(), /Refused requests for this address/)
  await post()
  await eventually(async () => (await refusalsOf(store, sender.app.id)).length > 0)
  const shown = await page()
  assert.match(shown, /Refused requests for this address/)
  assert.match(shown, /Too many emails to one recipient/)
})

test('an address with a link in it offers nothing to allow, unless the app has sent such a link', async () => {
  const sender = await newSender(service, 'lured', testSettings)
  const page = async (origin: string) =>
    (await third.get(`/apps/lured/links?url=${encodeURIComponent(`${origin}/x?token=any`)}`)).text()
  assert.match(await page('https://evil.example'), /It would be refused/)
  assert.doesNotMatch(await page('https://evil.example'), /Allow https:/)
  const url = 'https://staging.lured.example/x?token=abc'
  await service.post(validBody({ url }, store.now()), { authorization: `Bearer ${sender.key}` })
  // Asking the page until it changes would use up the rate of `third`.
  await eventually(async () => (await refusalsOf(store, sender.app.id)).length > 0)
  assert.match(await page('https://staging.lured.example'), /Allow https:/)
  const typed = await third.post('/apps/lured/links/test', { url: 'https://evil.example/x?token=any' })
  assert.match(await typed.text(), /Allow https:/)
})

test('an address offers to undo only what the newest change removed', async () => {
  const page = async (entry: string) =>
    (await third.get(`/apps/undone/links?${new URLSearchParams({ kind: 'allowedUrls', removed: entry })}`)).text()
  const sender = await newSender(service, 'undone', {
    ...testSettings,
    allowedUrls: ['https://a.test', 'https://b.test'],
  })
  await third.post('/apps/undone/links/remove', { kind: 'allowedUrls', entry: 'https://a.test' })
  assert.match(await page('https://a.test'), /was removed: matching links are refused/)
  for (const entry of ['https://b.test', 'https://evil.test']) assert.doesNotMatch(await page(entry), /Undo/, entry)
  await third.post('/apps/undone/links/localhost', { allow: 'yes' })
  assert.doesNotMatch(await page('https://a.test'), /Undo/)
  assert.deepEqual((await store.findApp(sender.app.id))?.settings.allowedUrls, ['https://b.test'])
})

test('a link that was tested keeps the names of its parameters, and none of their values', async () => {
  const shown = async (url: string) => {
    const page = await (await third.post('/apps/acme/links/test', { url })).text()
    return /id="test-url"[^>]* value="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
  }
  const link = 'https://app.acme.test/auth/x'
  assert.equal(await shown(`${link}?next=SECRET-1&token=SECRET-2`), `${link}?next=any&token=any`)
  assert.equal(await shown(`${link}?SECRET-3`), `${link}?token=any`)
  assert.equal(await shown(link), link)
})

test('an address that ends in a slash leads to the page; one that is no URL has a page as well', async () => {
  const moved = await third.get('/apps/acme/links/?done=app_saved', { accept: 'text/html' })
  assert.equal(moved.status, 308)
  assert.equal(moved.headers.get('location'), '/apps/acme/links?done=app_saved')
  const answer = await third.get('//', { accept: 'text/html' })
  assert.equal(answer.status, 404)
})
