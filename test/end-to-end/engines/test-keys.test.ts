/** Test keys: the whole way of an email, up to a relay that only simulates. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { slowMs } from '../../../src/delivery/relay/simulated-relay.ts'
import { simulatedOutcomes } from '../../../src/domain/app/test-side.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import { adminTokens, ask, newManagementToken } from '../../support/management.ts'
import { newSender, relayTo, send, startTestService, validBody } from '../../support/service.ts'
import { startSmtpServer } from '../../support/smtp.ts'
import { eventually } from '../../support/wait.ts'

const links = 'https://links.acme.test'

async function start(t: TestContext) {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(server.port)], linksBaseUrl: links })
  const token = await adminTokens(service)
  const manage = (line: string, body?: object) => ask(service, line, { token: token(), body })
  const { slug } = service.app
  const made = await manage(`POST /v1/apps/${slug}/keys`, { name: 'tests', test: true })
  assert.equal(made.status, 201, made.text)
  const post = (to: string, change: object = {}, key: string = made.body.key) =>
    send(service.apiUrl, JSON.stringify(validBody({ to, ...change })), { authorization: `Bearer ${key}` })
  const accept = async (to: string, change: object = {}) => {
    const answer = await post(to, change)
    assert.equal(answer.status, 202, JSON.stringify(answer.body))
    return answer.headers.get('email-id') as EmailId
  }
  const reaches = (id: EmailId, state: string) =>
    eventually(async () => {
      const { body } = await manage(`GET /v1/emails/${id}`)
      return body.state === state ? body : null
    }, 20_000)
  return { accept, key: made.body, manage, post, reaches, server, service, slug }
}

const at = (outcome: string, tag = 'ada') => `${outcome}+${tag}@postern.test`

test('the recipient of a test email chooses its outcome, and nothing reaches the relay', async (t) => {
  const { accept, manage, reaches, server, slug } = await start(t)
  const ids = Object.fromEntries(
    await Promise.all(
      simulatedOutcomes.map(async (outcome) => [
        outcome,
        await accept(
          at(outcome),
          outcome === 'expired' ? { expiresAt: new Date(Date.now() + 4000).toISOString() } : {},
        ),
      ]),
    ),
  ) as Record<(typeof simulatedOutcomes)[number], EmailId>
  const states = { refused: 'failed', slow: 'delivered', deferred: 'delivered' } as Record<string, string>
  for (const outcome of simulatedOutcomes) {
    const email = await reaches(ids[outcome], states[outcome] ?? outcome)
    assert.equal(email.test, true)
    assert.match(email.explanation, /test key/)
  }
  const [deferred, slow] = [await reaches(ids.deferred, 'delivered'), await reaches(ids.slow, 'delivered')]
  assert.deepEqual(
    deferred.trail.map(({ outcome }: { outcome: string }) => outcome),
    ['deferred', 'delivered'],
  )
  assert.ok(Date.parse(slow.finishedAt) - Date.parse(slow.acceptedAt) >= slowMs)
  assert.equal((await reaches(ids.refused, 'failed')).reason, 'refused_by_relay')
  assert.equal((await reaches(ids.bounced, 'bounced')).reason, 'no_mailbox')
  assert.equal(server.received.length, 0)
  const { body } = await manage(`GET /v1/apps/${slug}/inbox`)
  const kept = body.items.map(({ to }: { to: string }) => to.split('+')[0]).sort()
  assert.deepEqual(kept, ['bounced', 'complained', 'deferred', 'delivered', 'slow'])
  assert.equal((await manage(`GET /v1/emails?app=${slug}`)).body.items.length, 0)
  assert.equal((await manage('GET /v1/emails')).body.items.length, 0)
  for (const query of ['test=true', `app=${slug}&test=true`])
    assert.equal((await manage(`GET /v1/emails?${query}`)).body.items.length, simulatedOutcomes.length)
})

test('a test key sends to no other recipient, and these are nothing special for another key', async (t) => {
  const { key, manage, post, reaches, service, slug } = await start(t)
  for (const to of ['ada@example.com', 'ada@postern.test', 'deliveredx@postern.test', 'delivered@mail.postern.test']) {
    const answer = await post(to)
    assert.equal(answer.status, 400)
    assert.equal(answer.body.error.issues?.[0]?.code, 'not_a_test_recipient')
  }
  const refusals = await eventually(async () => {
    const { items } = (await manage(`GET /v1/refusals?app=${slug}&test=true`)).body
    return items.length === 4 ? items : null
  })
  assert.equal(refusals[0].issues[0], 'to not_a_test_recipient')
  assert.deepEqual((await manage(`GET /v1/refusals?app=${slug}`)).body.items, [])
  assert.equal((await manage(`GET /v1/refusals?key=${key.id}`)).body.items.length, 4)
  const real = (await service.post(validBody({ to: at('bounced') }))).headers.get('email-id') as EmailId
  assert.equal((await reaches(real, 'delivered')).test, false, 'the relay of the test takes it')
})

test('an email of a test key is waited for, whole, by the token of an operator of the app', async (t) => {
  const { accept, manage, service, slug } = await start(t)
  const to = at('delivered', 'grace')
  const waiting = manage(`GET /v1/apps/${slug}/inbox/wait?timeout=15&to=${encodeURIComponent(to)}&type=magic_link`)
  await accept(at('delivered', 'other'))
  const id = await accept(to)
  const { body, status } = await waiting
  assert.equal(status, 200)
  assert.equal(body.id, id)
  assert.equal(body.to, to)
  assert.match(body.url, /^https:\/\/app\.acme\.test\/.*token=/)
  assert.ok(body.html.includes(body.url.replaceAll('&', '&amp;')) && body.text.includes(body.url))
  const unencoded = await manage(`GET /v1/apps/${slug}/inbox?to=${to}`)
  assert.deepEqual(
    unencoded.body.items.map(({ seq }: { seq: number }) => seq),
    [body.seq],
  )
  const later = await manage(`GET /v1/apps/${slug}/inbox/wait?timeout=0&after=${body.seq}`)
  assert.deepEqual([later.status, later.body.error.code], [404, 'no_such_email'])
  const none = await manage(`GET /v1/apps/${slug}/inbox?after=${new Date(Date.now() + 60_000).toISOString()}`)
  assert.deepEqual(none.body.items, [])
  const reader = await newManagementToken(service, 'reader')
  assert.equal((await ask(service, `GET /v1/apps/${slug}/inbox`, { token: reader })).status, 403)
  const [row] = await service.store.listInbox({ app: service.app.id, order: 'newest', limit: 1 })
  assert.ok(row && !row.sealed.includes(to), 'it is sealed')
})

test('a thousand test emails leave every count of real mail unchanged', async (t) => {
  const { accept, manage, reaches, service, slug } = await start(t)
  const real = await service.post(validBody({ to: 'ada@example.com' }))
  await reaches(real.headers.get('email-id') as EmailId, 'delivered')
  const counts = async () => ({
    usage: (await manage(`GET /v1/apps/${slug}/usage`)).body,
    all: (await manage('GET /v1/usage')).body,
    activity: (await manage(`GET /v1/activity?app=${slug}&step=hour`)).body,
    suppressions: (await manage('GET /v1/suppressions')).body,
    status: (await manage('GET /v1/status')).body.attention,
    emails: (await manage('GET /v1/emails')).body,
    refusals: (await manage('GET /v1/refusals')).body,
    metrics: (await (await fetch(`${service.urls.ops}/metrics`)).text())
      .split('\n')
      .filter((line) => /^postern_(?:requests|request_duration|emails|attempt|reports|accept)/.test(line)),
  })
  const before = await eventually(async () => {
    const found = await counts()
    return found.activity.total.delivered === 1 ? found : null
  })
  const outcomes = ['delivered', 'bounced', 'complained', 'refused', 'suppressed'] as const
  for (let n = 0; n < 200; n++) await Promise.all(outcomes.map((outcome) => accept(at(outcome, `t${n}`))))
  await eventually(async () => (await service.store.measureQueue()).depth === 0, 60_000)
  assert.deepEqual(await counts(), before)
})

test('each side of an app has the daily limit for itself', async (t) => {
  const { accept, manage, post, service, slug } = await start(t)
  const limits = { ...service.app.settings.limits, daily: 2 }
  assert.equal((await manage(`PATCH /v1/apps/${slug}`, { limits })).status, 200)
  for (const tag of ['a', 'b']) await accept(at('delivered', tag))
  assert.equal((await post(at('delivered'))).body.error.code, 'daily_limit_reached')
  assert.equal((await service.post(validBody({ to: 'b@example.com' }))).status, 202)
})

test('a hosted link of a test email opens', async (t) => {
  const { accept, manage, service, slug } = await start(t)
  assert.equal((await manage(`PATCH /v1/apps/${slug}`, { hostedLinks: 'always' })).status, 200)
  const to = at('delivered')
  await accept(to)
  const { body } = await manage(`GET /v1/apps/${slug}/inbox/wait?to=${encodeURIComponent(to)}`)
  assert.ok(body.url.startsWith(`${links}/`), body.url)
  const page = await fetch(body.url.replace(links, service.urls.links ?? ''))
  assert.equal(page.status, 200)
})

test('an email of a test key that is cancelled counts as none, and the audit of the app has it', async (t) => {
  const { accept, manage, reaches, service, slug } = await start(t)
  const id = await accept(at('expired'))
  assert.match((await reaches(id, 'deferred')).explanation, /next attempt/)
  assert.equal((await manage(`POST /v1/emails/${id}/cancel`)).body.state, 'cancelled')
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.match(metrics, /^postern_emails_finished_total\{state="cancelled",reason="by_operator"\} 0$/m)
  const { items } = (await manage(`GET /v1/audit?app=${slug}`)).body
  assert.deepEqual([items[0].action, items[0].target, items[0].app], ['email.cancel', id, service.app.id])
})

test('a wait that nobody waits for any more ends, and so does one when the service stops', async (t) => {
  const { manage, service, slug } = await start(t)
  await newSender(service, 'other')
  const token = await adminTokens(service)
  /** Twenty are let wait; the others are refused at once. */
  const begin = async (app: string, signal: AbortSignal) => {
    const refused: number[] = []
    const wait = async () => {
      const url = `${service.urls.console}/v1/apps/${app}/inbox/wait?timeout=25`
      const { status } = await fetch(url, { headers: { authorization: `Bearer ${token()}` }, signal })
      if (status === 429) refused.push(status)
      return status
    }
    const waits = Array.from({ length: 25 }, () => wait().catch(() => null))
    await eventually(() => refused.length === 5)
    return waits
  }
  const left = new AbortController()
  const waits = await begin(slug, left.signal)
  left.abort()
  await Promise.all(waits)
  await eventually(async () => (await manage(`GET /v1/apps/${slug}/inbox/wait?timeout=0`)).status === 404)
  const last = await begin('other', t.signal)
  await service.stop({ graceMs: 10_000 })
  const statuses = await Promise.all(last)
  assert.deepEqual(statuses.toSorted(), [...Array(20).fill(404), ...Array(5).fill(429)])
})

test('no more than 200 requests wait for emails of all apps', async (t) => {
  const { service, manage } = await start(t)
  const token = await adminTokens(service)
  const refused: string[] = []
  const wait = async (app: string) => {
    const url = `${service.urls.console}/v1/apps/${app}/inbox/wait?timeout=25`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token()}` }, signal: t.signal })
    if (answer.status === 429) refused.push(await answer.text())
  }
  const apps = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => (await newSender(service, `app${n}`)).app.slug),
  )
  const waits = apps.flatMap((app) => Array.from({ length: 17 }, () => wait(app).catch(() => null)))
  await eventually(() => refused.length === 4)
  assert.match(refused.join(), /200 for those of all apps/)
  assert.equal((await manage('GET /v1/whoami')).status, 200)
  await service.stop({ graceMs: 10_000 })
  await Promise.all(waits)
})
