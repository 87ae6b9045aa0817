/** The console does what somebody chose in a form, in a filter or in an address. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { dayMs } from '../../src/domain/duration.ts'
import { shortenId } from '../../src/domain/id.ts'
import { formOf, newVisitor, signIn, signInMany, startBusyConsole } from '../support/console.ts'
import { newSender, testSettings, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startBusyConsole({ after })
const { store } = service
/** Each has a rate, which several people share here. */
const admin = newVisitor(service, await signInMany(service))
const textOf = async (path: string) => (await admin.get(path)).text()

/** The times agree to a minute. */
function isAbout(ms: number | null | undefined, expectedMs: number): void {
  assert.ok(Math.abs((ms ?? 0) - expectedMs) < 60_000, `${ms} is not about ${expectedMs}`)
}

test('retrying all is offered above lists that have deferred emails, to those who may', async () => {
  const reader = newVisitor(service, await signIn(service, 'reader'))
  const offers = async (path: string, visitor = admin) => / deferred…<\/a>/.test(await (await visitor.get(path)).text())
  // On a slow machine the next attempt may be due, and for a moment none is deferred.
  for (const path of ['/emails', '/emails?state=deferred&app=acme']) await eventually(() => offers(path))
  assert.equal(await offers('/emails?state=failed'), false)
  assert.equal(await offers('/emails?app=shop'), false, 'none of it is deferred')
  assert.equal(await offers('/emails', reader), false)
})

test('disabling a person shows what the person made, and ends what the form names', async () => {
  const leaver = await signIn(service)
  const [own, remover] = [newVisitor(service, leaver), newVisitor(service, await signIn(service))]
  for (const name of ['leaves a token', 'gone']) await own.post('/settings/tokens', { name, role: 'admin' })
  await own.post('/settings/tokens', { name: 'leaves another', role: 'reader', scope: 'apps', app: 'acme' })
  await remover.post('/settings/tokens', { name: 'of the remover', role: 'reader' })
  for (const name of ['leaves a key', 'leaked']) await own.post('/apps/acme/keys', { name })
  const tokenOf = async (name: string) => (await store.listTokens()).find((token) => token.name === name)
  const keyOf = async (name: string) => (await store.listKeys(service.app.id)).find((key) => key.name === name)
  const gone = await tokenOf('gone')
  await remover.post(`/settings/tokens/${gone?.id}/revoke`)
  const path = `/settings/people/${leaver.person}`
  const html = await (await remover.get(`${path}?disable=yes`)).text()
  for (const name of ['leaves a token', 'leaves another', 'leaves a key', 'leaked'])
    assert.ok(html.includes(name), name)
  for (const id of [gone?.id, (await tokenOf('of the remover'))?.id])
    assert.ok(!html.includes(`${id}`), 'neither what has ended nor what others made')
  const named = [
    ...[await tokenOf('leaves a token'), await tokenOf('of the remover')],
    ...[await keyOf('leaked'), { id: service.keyId }],
  ]
  const fields = Object.fromEntries(named.map((each) => [`revoke-${each?.id}`, 'yes']))
  assert.equal((await remover.post(path, { disabled: 'yes', ...fields })).status, 303)
  const ended = [
    ...(await store.listTokens()).filter(({ revokedAt }) => revokedAt !== null).map(({ name }) => name),
    ...(await store.listKeys(service.app.id)).filter(({ revokedAt }) => revokedAt !== null).map(({ name }) => name),
  ]
  assert.deepEqual(ended.sort(), ['gone', 'leaked', 'leaves a token'], 'nothing that somebody else made')
  assert.deepEqual((await tokenOf('leaves another'))?.apps, [service.app.id], 'the apps that were chosen')
})

test('a key that is replaced works for as long as was chosen', async () => {
  const chosen: [grace: string, lastsMs: number][] = [
    ['0', 0],
    ['3600', 3_600_000],
    ['86400', dayMs],
    ['made up', dayMs],
  ]
  for (const [n, [grace, lastsMs]] of chosen.entries()) {
    const { app, keyId } = await newSender(service, `replaced-${n}`, testSettings)
    const form = formOf(
      await textOf(`/apps/replaced-${n}/keys?replace=${keyId}`),
      `/apps/replaced-${n}/keys/${keyId}/replace`,
    )
    assert.equal((await admin.post(`/apps/replaced-${n}/keys/${keyId}/replace`, { ...form, grace })).status, 201)
    const old = (await store.listKeys(app.id)).find(({ id }) => id === keyId)
    isAbout(old?.expiresAt, store.now() + lastsMs)
  }
})

test('a token lives as long as was chosen', async () => {
  for (const days of ['7', '365']) {
    assert.equal((await admin.post('/settings/tokens', { name: `for ${days}`, role: 'reader', days })).status, 200)
    const made = (await store.listTokens()).find(({ name }) => name === `for ${days}`)
    isAbout(made?.expiresAt, store.now() + Number(days) * dayMs)
  }
  const made = await admin.post('/settings/tokens', { name: 'once', role: 'admin', days: '7' })
  const { name } = formOf(await made.text(), '/settings/tokens')
  assert.equal(name, '', 'the form is empty again, for another token')
})

test('a recipient is suppressed for as long as was chosen', async () => {
  for (const days of ['1', '365']) {
    const to = `for${days}@example.com`
    assert.equal((await admin.post('/suppressions', { to, app: 'acme', days })).status, 303)
    const [newest] = (await store.listSuppressions({ apps: [service.app.id], limit: 1 })).items
    isAbout(newest?.until, store.now() + Number(days) * dayMs)
  }
})

test('an app gets the short name that was typed, which never changes', async () => {
  const form = { name: 'Typed', from: 'auth@typed.example', allowedUrls: '', slug: 'other' }
  assert.equal((await admin.post('/new-app', form)).headers.get('location'), '/apps/other/keys?done=app_created')
  assert.equal((await store.findApp('other'))?.settings.name, 'Typed')
  assert.equal(await store.findApp('typed'), null)
})

test('an address leads to no other site, however many slashes it has', async () => {
  for (const path of ['//a//evil.test/', '/a//evil.test//', '//evil.test/', '/apps//']) {
    const location = (await admin.get(path)).headers.get('location') ?? '/'
    assert.equal(new URL(location, service.urls.console).origin, new URL(service.urls.console ?? '').origin, path)
  }
})

test('the search repeats nothing that looks like a secret', async () => {
  for (const q of ['psa_half-of-a-key', 'pss_half', 'pst_half']) {
    const answer = await admin.post('/find', { q })
    const page = await answer.text()
    assert.equal(answer.status, 404)
    assert.match(page, /is no whole delivery key/)
    assert.ok(!page.includes(q), q)
  }
})

test('emails are listed from the time that was chosen, and so are their next pages', async () => {
  const { key } = await newSender(service, 'paged', testSettings)
  const headers = { authorization: `Bearer ${key}` }
  const post = (n: number) => service.post(validBody({ to: `p${n}@example.com` }, store.now()), headers)
  await post(0)
  service.advance(20 * 60_000)
  for (let n = 1; n <= 60; n++) await post(n)
  const idsOf = (page: string) => new Set(page.match(/(?<=\/emails\/)em_\w{26}/g))
  const first = await textOf('/emails?app=paged&within=15')
  const [older = ''] = /\/emails\?[^"]*cursor=[^"]*/.exec(first) ?? []
  assert.match(older, /since=/)
  service.advance(60_000) // the pages of a list share the time of the first
  const next = await admin.get(older.replaceAll('&amp;', '&'))
  assert.equal(next.status, 200)
  const [one, two] = [idsOf(first), idsOf(await next.text())]
  assert.equal(one.union(two).size, 60)
  const whole = await textOf('/emails?app=paged&within=60')
  const [rest = ''] = /\/emails\?[^"]*cursor=[^"]*/.exec(whole) ?? []
  assert.equal(idsOf(whole).union(idsOf(await textOf(rest.replaceAll('&amp;', '&')))).size, 61)
})

test('the audit is listed by the day', async () => {
  const { items } = await store.listAudit({ limit: 1, app: service.app.id, actions: ['app.create'] })
  const made = items[0]?.at ?? 0
  const ofDay = async (day: number) => {
    const date = new Date(made + day * dayMs).toISOString().slice(0, 10)
    return (await textOf(`/audit?app=acme&from=${date}&to=${date}`)).includes('created the app')
  }
  assert.deepEqual([await ofDay(0), await ofDay(1), await ofDay(-1)], [true, false, false])
})

test('the audit of an app is for its admins too; the names of people are not', async () => {
  const ofApp = newVisitor(service, await signIn(service, 'admin', [service.app.id]))
  assert.equal((await ofApp.get('/audit')).status, 200)
  const reader = newVisitor(service, await signIn(service, 'reader'))
  const id = await service.find('later1@example.com')
  const found = await reader.post('/find', { q: shortenId(id).slice(3) })
  assert.equal(found.headers.get('location'), `/emails/${shortenId(id)}`)
  const person = await signIn(service)
  assert.equal((await reader.post('/find', { q: person.name })).status, 404)
  assert.equal((await admin.post('/find', { q: person.name })).status, 303)
})

test('an auth server’s links live as long as was typed, and only its newest secret is active', async () => {
  const { app, keyId } = await newSender(service, 'hooked', testSettings)
  const path = '/apps/hooked/connect/logto'
  for (let made = 0; made < 2; made++) {
    const form = formOf(await textOf(path), path)
    assert.equal((await admin.post(path, form)).status, 201)
  }
  const keys = await textOf('/apps/hooked/keys')
  const own = (await store.listKeys(app.id)).filter(({ hook }) => hook !== null)
  assert.equal(own.length, 2)
  for (const { id } of own) assert.ok(!keys.includes(`?replace=${id}`), 'its own page replaces it')
  assert.ok(keys.includes(`?replace=${keyId}`))
  assert.equal(keys.match(/href="\/apps\/hooked\/connect\/logto">Replace…/g)?.length, 2)
  const page = await textOf(path)
  assert.deepEqual(page.match(/(?<=>)(active|replaced)(?=<)/g), ['active', 'replaced'], 'the newest first')
  for (const [life, status] of [
    ['600', 303],
    ['ten', 400],
  ] as const) {
    const settings = formOf(await textOf(path), `${path}/settings`)
    assert.equal((await admin.post(`${path}/settings`, { ...settings, life })).status, status, life)
  }
  const { authHooks } = (await store.findApp('hooked'))?.settings ?? {}
  assert.equal(authHooks?.logto?.lifeSeconds?.default, 600)
})

test('the list of people marks the one who looks, and nobody else', async () => {
  const [one, two] = [await signIn(service), await signIn(service)]
  const html = await (await newVisitor(service, one).get('/settings/people')).text()
  const marked = [...html.matchAll(/\/settings\/people\/(pe_\w+)">[^<]*<\/a> <span class="soft">\(you\)/g)]
  assert.deepEqual(
    marked.map(([, id]) => id),
    [one.person],
  )
  assert.ok(html.includes(two.person))
})
