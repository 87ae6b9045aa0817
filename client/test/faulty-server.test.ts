/**
 * The client against a faulty server in front of the real service: a call never queues two emails, and
 * no error contains a secret.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { startTestService } from '../../test/support/service.ts'
import { eventually } from '../../test/support/wait.ts'
import { type Email, Postern, type PosternError, type PosternOptions } from '../src/postern.ts'
import { type Fault, faults, startFaultyServer } from './faulty-server.ts'

const service = await startTestService({ after })
const quick: PosternOptions = { timeoutMs: 1_000, budgetMs: 5_000 }

/** An email whose secrets contain `canary`, which occurs nowhere else. */
const emailTo = (name: string): Email => ({
  to: `${name}.canary@example.com`,
  type: 'magic_link',
  url: `https://app.acme.test/auth?token=token%2Bcanary-${name}`,
  expiresAt: new Date(Date.now() + 900_000),
  code: 'CANARY-C0DE',
})

/** Everything that could be printed of an error. */
const everything = (error: PosternError): string =>
  [inspect(error, { depth: null, showHidden: true }), JSON.stringify(error), String(error), error.stack].join('\n')

function assertNoSecret(error: PosternError): void {
  const text = everything(error)
  for (const secret of [/canary|c0de/i, new RegExp(service.key)]) assert.doesNotMatch(text, secret)
}

async function received(to: string): Promise<number> {
  const list = (await (await fetch(`${service.urls.inbox}/api/inbox`)).json()) as { to: string }[]
  return list.filter((email) => email.to === to).length
}

/** Waits for an empty queue: the inbox is then complete. */
const drained = () => eventually(async () => (await service.store.readQueueGauge()).depth === 0)

async function clientBehind(t: { after(end: () => unknown): void }, next: () => Fault) {
  const server = await startFaultyServer(t, service.urls.api ?? '', next)
  return { server, client: new Postern({ ...quick, deliveryKey: service.key, baseUrl: server.url }) }
}

/** The code when a fault never ends; null is a success: a 202 was seen. */
const comesTo: Record<Fault, string | null> = {
  none: null,
  reset: 'network_error',
  'reset after the answer': 'network_error',
  hang: 'timeout',
  'hang after the answer': 'timeout',
  'half a status line': 'network_error',
  'half a body': null,
  'half a body, then nothing': null,
  'half a 503': 'unexpected_response',
  '503': 'queue_unavailable',
  '503 with Retry-After': 'queue_full',
  '429': 'key_rate_limited',
  '429 with Retry-After': 'key_rate_limited',
  '429 until tomorrow': 'daily_limit_reached',
  'a proxy’s page': 'unexpected_response',
  'a redirect': 'unexpected_response',
  'an echo': 'invalid_body',
}

const gone: Fault[] = ['429', '429 until tomorrow', 'a redirect', 'an echo']

describe('one fault, once and for ever', { concurrency: true }, () => {
  for (const fault of faults) {
    test(`${fault}, then good weather: at most one email`, async (t) => {
      let first = true
      const { server, client } = await clientBehind(t, () => {
        const next = first ? fault : 'none'
        first = false
        return next
      })
      const email = emailTo(fault.replace(/\W+/g, '.'))
      const outcome = await client.safeSend(email)
      await drained()
      assert.equal(outcome.ok, !gone.includes(fault), inspect(outcome))
      assert.equal(await received(email.to), outcome.ok ? 1 : 0)
      if (outcome.ok) assert.match(outcome.emailId ?? '', /^em_/)
      else assertNoSecret(outcome.error)
      assert.ok(server.met.length <= 2 || server.slowestMs() > 300, `${server.met.length} requests`)
    })

    test(`${fault}, for ever: at most one email, and an error that says why`, async (t) => {
      const { client } = await clientBehind(t, () => fault)
      const email = emailTo(`ever.${fault.replace(/\W+/g, '.')}`)
      const outcome = await client.safeSend(email)
      await drained()
      const count = await received(email.to)
      assert.ok(count <= 1, `${count} emails`)
      assert.equal(outcome.ok ? null : outcome.error.code, comesTo[fault])
      if (outcome.ok) return assert.equal(count, 1)
      assertNoSecret(outcome.error)
      assert.notEqual(outcome.error.message, '')
    })
  }
})

test('sixty calls through random weather: an email each where the client says so, never two', async (t) => {
  const seed = Number(process.env.POSTERN_TEST_SEED ?? Date.now() % 100_000)
  t.diagnostic(`POSTERN_TEST_SEED=${seed}`)
  // Two requests in five pass.
  const weather: Fault[] = [...faults, ...Array.from({ length: 10 }, () => 'none' as const)]
  let state = seed
  const random = () => {
    state = (state * 48_271 + 11) % 2_147_483_647
    return state / 2_147_483_647
  }
  const { client, server } = await clientBehind(t, () => weather[Math.floor(random() * weather.length)] ?? 'none')
  const emails = Array.from({ length: 60 }, (_, i) => emailTo(`storm.${i}`))
  const outcomes = await Promise.all(emails.map((email) => client.safeSend(email)))
  await drained()
  for (const [i, { to }] of emails.entries()) {
    const outcome = outcomes[i]
    const count = await received(to)
    assert.ok(count <= 1, `${count} emails of one call`)
    if (outcome?.ok) assert.equal(count, 1, 'said to be queued, and was not')
    else if (outcome) assertNoSecret(outcome.error)
  }
  t.diagnostic(`${outcomes.filter(({ ok }) => ok).length} of 60 queued in ${server.met.length} requests`)
})

test('nobody there: an error that names the host and the reason, and no secret', async () => {
  const client = new Postern({ ...quick, deliveryKey: service.key, baseUrl: 'http://127.0.0.1:9/' })
  const outcome = await client.safeSend(emailTo('nobody'))
  assert.ok(!outcome.ok)
  assert.equal(outcome.error.code, 'network_error')
  assert.match(outcome.error.message, /^No answer from http:\/\/127\.0\.0\.1:9/)
  assertNoSecret(outcome.error)
})

test('a fetch that puts the request into its errors: nothing of it is passed on', async () => {
  const telling = (async (url: unknown, init: RequestInit) => {
    throw Object.assign(new Error(`failed: ${url} ${inspect(init)}`), { cause: init, code: 'pst_canary' })
  }) as typeof fetch
  const client = new Postern({
    ...quick,
    deliveryKey: service.key,
    baseUrl: 'http://postern.test',
    fetch: telling,
  })
  const outcome = await client.safeSend(emailTo('telling'))
  assert.ok(!outcome.ok)
  assertNoSecret(outcome.error)
})

test('no address got two emails in all of this', async () => {
  await drained()
  const list = (await (await fetch(`${service.urls.inbox}/api/inbox`)).json()) as { to: string }[]
  assert.ok(list.length > 40)
  assert.equal(new Set(list.map(({ to }) => to)).size, list.length)
})
