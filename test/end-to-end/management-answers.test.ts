/** The management API's answers about time, order, names and scope. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { dayMs, hourMs } from '../../src/domain/duration.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { signIn } from '../support/console.ts'
import { adminTokens, ask, managementDocument, newManagementToken } from '../support/management.ts'
import { operator } from '../support/operator.ts'
import { newSender, send, startTestService, testSettings, validBody } from '../support/service.ts'

const service = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const { store } = service
const admin = await adminTokens(service)
/** More than one step of a change clears. */
const suppressionsMany = 2100

const get = (path: string, token = admin()) => ask(service, `GET ${path}`, { token })
const post = (path: string, body: object) => ask(service, `POST ${path}`, { token: admin(), body })
const iso = (ms: number): string => new Date(ms).toISOString()
const minutesUntil = (time: string): number => Math.round((Date.parse(time) - store.now()) / 60_000)

async function postEmail(key: string, to = 'ada@example.com') {
  const headers = { authorization: `Bearer ${key}` }
  return (await send(service.apiUrl, JSON.stringify(validBody({ to }, store.now())), headers)).headers.get('email-id')
}

test('the status names keys that end soon to those who see their app', async () => {
  const [own, foreign] = [await newSender(service, 'own'), await newSender(service, 'foreign')]
  const body = { name: 'ends', expiresAt: iso(store.now() + dayMs) }
  await post('/v1/apps/foreign/keys', body)
  const kindsFor = async (apps: Parameters<typeof newManagementToken>[2]) => {
    const token = await newManagementToken(service, 'reader', apps)
    return (await get('/v1/status', token)).body.attention.map(({ kind }: { kind: string }) => kind)
  }
  assert.ok((await kindsFor([foreign.app.id])).includes('key_expires'))
  assert.ok(!(await kindsFor([own.app.id])).includes('key_expires'))
})

test('a token lives for 400 days at most, and a key that is replaced for a day or as long as is asked', async () => {
  const make = (days: number) =>
    post('/v1/tokens', { name: `${days} days`, role: 'reader', expiresAt: iso(store.now() + days * dayMs) })
  const late = await make(401)
  assert.deepEqual([late.status, late.body.error.issues[0].code], [400, 'too_late'])
  assert.equal((await make(399)).status, 201)
  const { app, keyId } = await newSender(service, 'replacing')
  const byDefault = await post(`/v1/keys/${keyId}/replace`, {})
  assert.equal(minutesUntil(byDefault.body.oldExpiresAt), 24 * 60)
  const inAnHour = await post(`/v1/keys/${byDefault.body.id}/replace`, { graceSeconds: 3600 })
  assert.equal(minutesUntil(inAnHour.body.oldExpiresAt), 60)
  const ending = { name: 'short', expiresAt: iso(store.now() + dayMs) }
  const short = await post('/v1/apps/replacing/keys', ending)
  const endsFirst = await post(`/v1/keys/${short.body.id}/replace`, { graceSeconds: (2 * dayMs) / 1000 })
  assert.equal(endsFirst.body.oldExpiresAt, ending.expiresAt, 'its own end comes before that of the grace')
  const ends = new Map((await store.listKeys(app.id)).map(({ id, expiresAt }) => [id, expiresAt]))
  for (const [id, { body }] of [
    [keyId, byDefault],
    [byDefault.body.id, inAnHour],
    [short.body.id, endsFirst],
  ] as const)
    assert.equal(iso(ends.get(id) ?? 0), body.oldExpiresAt)
})

test('searches by an address have a rate of their own, and an error says when to ask again', async (t) => {
  // The clock of the rates: each request comes a tenth of a second after the one before, or later.
  const now = performance.now.bind(performance)
  let aheadMs = 0
  t.mock.method(performance, 'now', () => now() + aheadMs)
  const limit = async (path: string) => {
    const token = await newManagementToken(service, 'reader')
    const search = () => {
      aheadMs += 100
      return ask(service, `POST ${path}`, { token, body: { to: 'ada@example.com' } })
    }
    let refused = await search()
    for (let n = 0; n < 200 && refused.status !== 429; n++) refused = await search()
    assert.match(refused.text, /at most 60 a minute/)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 60, String(seconds))
    assert.match(refused.body.error.message, new RegExp(`Try again in ${seconds} s`))
  }
  for (const path of ['/v1/emails/find', '/v1/suppressions/find']) await limit(path)
})

test('the emails of several apps are listed from the newest, over all pages', async () => {
  const [one, two] = [await newSender(service, 'page-one'), await newSender(service, 'page-two')]
  const sent: (string | null)[] = []
  for (const { key } of [one, two, two, one, two, one]) sent.push(await postEmail(key))
  const token = await newManagementToken(service, 'reader', [one.app.id, two.app.id])
  const found: string[] = []
  let next = ''
  do {
    const page = await get(`/v1/emails?limit=1${next && `&cursor=${next}`}`, token)
    found.push(...page.body.items.map(({ id }: { id: string }) => id))
    next = page.body.next ?? ''
  } while (next !== '')
  assert.deepEqual(found, sent.toReversed())
  const seen = (await get('/v1/emails', token)).body.items.map(({ id }: { id: string }) => id)
  assert.deepEqual(seen, found)
})

test('a dry run answers with the app as it would be', async () => {
  const { app } = await newSender(service, 'dry-run')
  await store.updateApp(app.id, { status: 'disabled' }, operator)
  const body = { name: 'Other', from: testSettings.from }
  const put = (dryRun: boolean) => ask(service, `PUT /v1/apps/dry-run?dryRun=${dryRun}`, { token: admin(), body })
  const dry = await put(true)
  assert.deepEqual([dry.body.id, dry.body.status, dry.body.name], [app.id, 'disabled', 'Other'])
  assert.equal((await get('/v1/apps/dry-run')).body.name, testSettings.name)
  assert.equal((await put(false)).body.status, 'disabled', 'what the body leaves out stays')
  assert.equal((await get('/v1/apps/dry-run')).body.name, 'Other')
})

test('the age of the queue is in seconds, and the day of the usage ends at midnight UTC', async () => {
  const own = await startTestService({ after }, { roles: new Set(['api', 'console']) })
  const token = await newManagementToken(own)
  await own.post(validBody({}, own.store.now()))
  own.advance(90_000)
  const { oldestAgeSeconds } = (await ask(own, 'GET /v1/status', { token })).body.queue
  assert.ok(oldestAgeSeconds >= 90 && oldestAgeSeconds < 120, String(oldestAgeSeconds))
  const { day, endsAt } = (await ask(own, 'GET /v1/usage', { token })).body
  assert.equal(Date.parse(endsAt), Date.parse(`${day}T00:00:00Z`) + dayMs)
})

test('a name has no spaces at its ends', async () => {
  await newSender(service, 'named')
  for (const name of [' ', ' deploy', 'deploy ']) {
    assert.equal((await post('/v1/apps/named/keys', { name })).status, 400, 'key')
    assert.equal((await post('/v1/tokens', { name, role: 'reader' })).status, 400, 'token')
  }
})

test('unknown fields are reported beside other faults', async () => {
  const answer = await post('/v1/tokens', { name: '', role: 'cook', colour: 1, apps: [] })
  const issues: { field: string; code: string; message: string }[] = answer.body.error.issues
  assert.deepEqual(issues.map(({ field, code }) => [field, code]).sort(), [
    ['apps', 'malformed_value'],
    ['colour', 'unknown_field'],
    ['name', 'malformed_value'],
    ['role', 'malformed_value'],
  ])
  const messages = new Map(issues.map(({ field, message }) => [field, message]))
  assert.equal(messages.get('name'), 'This must not be empty.')
  assert.equal(messages.get('role'), 'This must be one of reader, operator, admin.')
  assert.equal(messages.get('apps'), 'This needs at least 1 entry.')
})

test('conditions that an operation does not know are left alone, a query may say no, and a body is UTF-8', async () => {
  const conditional = { token: admin(), headers: { 'if-none-match': '"1"' } }
  assert.equal((await ask(service, 'GET /v1/apps/acme', conditional)).status, 200)
  const patch = (query: string, body: unknown) => ask(service, `PATCH /v1/apps/acme${query}`, { token: admin(), body })
  assert.equal((await patch('?dryRun=false', { supportContact: 'now@acme.test' })).status, 200)
  assert.equal((await get('/v1/apps/acme')).body.supportContact, 'now@acme.test')
  const wrong = await fetch(`${service.urls.console}/v1/apps/acme`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${admin()}`, 'content-type': 'application/json' },
    body: Buffer.from('{"name":"Acm\xe9"}', 'latin1'),
  })
  assert.equal(wrong.status, 400)
  assert.match(await wrong.text(), /not JSON in UTF-8/)
})

test('searches for an address, checks of a domain and test messages are in the audit', async () => {
  const { app } = await newSender(service, 'audited')
  await store.updateApp(
    app.id,
    { settings: { ...app.settings, webhookUrl: 'https://app.acme.test/postern' } },
    operator,
  )
  await store.setWebhookSecret({ app: app.id, sealed: '', oldUntil: 0 }, operator)
  const since = iso(store.now())
  for (const [action, path, body] of [
    ['suppression.find', '/v1/suppressions/find', { to: 'ada@example.com' }],
    ['domain.check', '/v1/apps/audited/domain/check', undefined],
    ['webhook.test', '/v1/apps/audited/webhooks/test', {}],
    ['list.export', '/v1/export', { list: 'refusals' }],
  ] as const) {
    const answer = await ask(service, `POST ${path}`, { token: admin(), ...(body && { body }) })
    assert.ok(answer.status < 300, answer.text)
    const { items } = (await get(`/v1/audit?action=${action}&since=${since}`)).body
    assert.equal(items.length, 1, action)
  }
})

test('an address that the sender of webhooks would not use is refused', async () => {
  const strict = await startTestService({ after }, { roles: new Set(['api', 'console']), allowsPrivateWebhooks: false })
  const token = await newManagementToken(strict)
  const patch = (webhookUrl: string) => ask(strict, 'PATCH /v1/apps/acme', { token, body: { webhookUrl } })
  assert.equal((await patch('http://app.acme.test/postern')).body.error.issues[0].code, 'insecure_webhook_url')
  assert.equal((await patch('https://app.acme.test/postern')).status, 200)
})

test('minutes of an app that are not kept are refused, and not answered as empty', async () => {
  const from = (hours: number) => encodeURIComponent(iso(store.now() - hours * hourMs))
  const ask = (hours: number) => get(`/v1/activity?app=acme&step=minute&from=${from(hours)}`)
  assert.equal((await ask(1)).status, 200)
  const late = await ask(3)
  assert.equal(late.status, 400)
  assert.match(late.body.error.issues[0].message, /kept for 2 hours: use step=hour/)
})

test('a test email that is refused says which limit was reached', async () => {
  const limits = { ...testSettings.limits, daily: 1 }
  await newSender(service, 'limited', { ...testSettings, limits })
  const sendOne = () => post('/v1/apps/limited/test-email', { to: 'ada@example.com' })
  assert.equal((await sendOne()).status, 200)
  const { body } = await sendOne()
  assert.equal(body.error.code, 'test_email_refused')
  assert.match(body.error.message, /\(daily_limit_reached\): .*\b1\b/)
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.match(metrics, /postern_emails_finished_total\{state="suppressed",reason=""\} 0/, 'neither is')
})

test('the whole service sees the suppressions for all apps, and filters those of an address', async () => {
  const sender = await newSender(service, 'suppressing')
  const recipient = store.nameRecipient('zoe@example.com' as EmailAddress)
  const until = store.now() + dayMs
  const email = await postEmail(sender.key, 'zoe@example.com')
  for (const app of [sender.app.id, null])
    await store.setSuppression({ app, recipient, destination: 'other', until }, operator)
  const seen = async (token?: string) => (await get(`/v1/emails/${email}`, token)).body.suppressions.length
  assert.equal(await seen(), 2)
  assert.equal(await seen(await newManagementToken(service, 'reader', [sender.app.id])), 1)
  const listed = async (filter: string) =>
    (await get(`/v1/suppressions?recipient=rc_${recipient}${filter}`)).body.items.length
  assert.deepEqual(
    await Promise.all(['', '&destination=other', '&destination=gmail', '&reason=complaint'].map(listed)),
    [2, 2, 0, 0],
  )
})

test('all suppressions that match are cleared by one request, however many steps that takes', async () => {
  const { app } = await newSender(service, 'cleared')
  const until = store.now() + dayMs
  const suppress = (n: number) => {
    const recipient = store.nameRecipient(`c${n}@example.com` as EmailAddress)
    return store.setSuppression({ app: app.id, recipient, destination: 'other', until }, operator)
  }
  for (let n = 0; n < suppressionsMany; n += 100)
    await Promise.all(Array.from({ length: 100 }, (_, i) => suppress(n + i)))
  const { body } = await post('/v1/suppressions/clear', { app: 'cleared' })
  assert.deepEqual(body, { removed: suppressionsMany, next: null })
  assert.deepEqual(await store.listSuppressions({ apps: [app.id], limit: 1 }), { items: [], next: null })
})

test('sessions that are over are not listed', async () => {
  const own = await startTestService({ after }, { roles: new Set(['api', 'console']), isDev: false })
  await signIn(own)
  const count = async () =>
    (await ask(own, 'GET /v1/sessions', { token: await newManagementToken(own) })).body.items.length
  assert.equal(await count(), 1)
  own.advance(13 * hourMs)
  assert.equal(await count(), 0)
})

test('the document leaves answers open for later fields, and bodies closed', () => {
  const isClosed = (part: unknown) => JSON.stringify(part).includes('"additionalProperties":false')
  const described = Object.values(managementDocument.paths).flatMap((methods) => Object.values(methods))
  assert.deepEqual([isClosed(managementDocument.components), described.length > 50], [false, true])
  for (const { operationId, responses } of described) assert.equal(isClosed(responses), false, operationId)
  const put = described.find(({ operationId }) => operationId === 'app.put')
  assert.ok(put && 'requestBody' in put && isClosed(put.requestBody))
})
