/** Retries, pauses and time limits, in virtual time, for any answers and delays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Email, Postern, type PosternOptions, type SendOutcome } from '../src/postern.ts'
import { virtualTime } from './virtual-time.ts'

const email: Email = {
  to: 'ada@example.com',
  type: 'magic_link',
  url: 'https://app.acme.test/auth?token=abc',
  expiresAt: '2099-01-01T00:00:00Z',
}

/** One answer of the server: after `ms`, a status (0: the connection breaks; -1: none). */
type Step = { ms: number; status: number; retryAfter?: string; bodyHangs?: boolean }

/** An attempt as the server saw it; `answered` is the status it sent, if in time. */
type Call = { at: number; key: string | null; answered?: number }

/** A `fetch` that plays `steps`, repeats the last, and records its calls. */
function player(steps: Step[], now: () => number) {
  const calls: Call[] = []
  const play = async (_url: unknown, init: RequestInit = {}): Promise<Response> => {
    const step = steps[Math.min(calls.length, steps.length - 1)] ?? { ms: 0, status: 202 }
    const call: Call = { at: now(), key: new Headers(init.headers).get('idempotency-key') }
    calls.push(call)
    const { signal } = init
    await new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
      if (step.status === -1) return
      if (step.ms === 0) resolve(undefined)
      else setTimeout(resolve, step.ms)
    })
    if (step.status === 0) throw new TypeError('fetch failed')
    call.answered = step.status
    const headers = new Headers({ 'content-type': 'application/json' })
    if (step.retryAfter !== undefined) headers.set('retry-after', step.retryAfter)
    const error = { code: 'queue_full', message: 'Full.', requestId: 'req_1' }
    const text = JSON.stringify(step.status === 202 ? { ok: true } : { ok: false, error })
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(step.bodyHangs ? text.slice(0, 5) : text))
        if (step.bodyHangs) signal?.addEventListener('abort', () => controller.error(signal.reason))
        else controller.close()
      },
    })
    return new Response(body, { status: step.status, headers })
  }
  return { calls, fetch: play as typeof fetch }
}

const clientOf = (fetching: typeof fetch, options: PosternOptions = {}) =>
  new Postern({ deliveryKey: 'pst_test', baseUrl: 'http://postern.test', fetch: fetching, ...options })

const stepOf: fc.Arbitrary<Step> = fc.record(
  {
    ms: fc.integer({ min: 0, max: 5_000 }),
    status: fc.constantFrom(-1, 0, 202, 400, 401, 403, 429, 500, 502, 503, 504),
    retryAfter: fc.constantFrom('0', '1', '2', '3600', 'soon', 'Fri, 15 Jan 2027 08:00:02 GMT'),
    bodyHangs: fc.boolean(),
  },
  { requiredKeys: ['ms', 'status'] },
)

test('whatever comes, a call ends within its budget, under one key, and repeats no refusal', async (t) => {
  const time = virtualTime(t)
  const property = fc.asyncProperty(
    fc.array(stepOf, { minLength: 1, maxLength: 6 }),
    fc.integer({ min: 1, max: 6_000 }),
    fc.integer({ min: 1, max: 4_000 }),
    fc.integer({ min: 0, max: 5 }),
    async (steps, budgetMs, timeoutMs, maxRetries) => {
      const { calls, fetch } = player(steps, time.now)
      const client = clientOf(fetch, { budgetMs, timeoutMs, maxRetries })
      const startedAt = time.now()
      // A timer of 0 ms takes 1 ms.
      const outcome = await time.settle(client.safeSend(email), budgetMs + 1)
      assert.ok(time.now() - startedAt <= budgetMs + 1)
      assert.ok(calls.length <= 1 + maxRetries)
      assert.equal(new Set(calls.map(({ key }) => key)).size, 1)
      const last = calls.at(-1)?.answered
      for (const { answered } of calls.slice(0, -1)) {
        assert.ok(answered === undefined || ![202, 400, 401, 403].includes(answered), `went on after ${answered}`)
      }
      assert.equal(outcome.ok, last === 202)
      if (!outcome.ok) assert.equal(outcome.error.status, last)
    },
  )
  await fc.assert(property, { numRuns: 150 })
})

test('each call has a key of its own', async (t) => {
  const time = virtualTime(t)
  const { calls, fetch } = player([{ ms: 1, status: 202 }], time.now)
  const client = clientOf(fetch)
  await time.settle(client.send(email), 100)
  await time.settle(client.send(email), 100)
  assert.notEqual(calls[0]?.key, calls[1]?.key)
})

for (const [name, step, at] of [
  ['503 with Retry-After: exactly then', { ms: 0, status: 503, retryAfter: '1' }, [0, 1000, 2000, 3000]],
  ['503 with a Retry-After beyond the budget: at once', { ms: 0, status: 503, retryAfter: '4' }, [0]],
  ['429 with a Retry-After within the budget', { ms: 0, status: 429, retryAfter: '2' }, [0, 2000]],
  ['429 without one', { ms: 0, status: 429 }, [0]],
  ['an attempt that hangs, and the rest of the budget', { ms: 0, status: -1 }, [0, 2600]],
] as [string, Step, number[]][]) {
  test(`when it tries again: ${name}`, async (t) => {
    t.mock.method(Math, 'random', () => 1)
    const time = virtualTime(t)
    const { calls, fetch } = player([step], time.now)
    const outcome = await time.settle(clientOf(fetch).safeSend(email), 4_000)
    assert.equal(outcome.ok, false)
    assert.deepEqual(
      calls.map((call) => call.at),
      at,
    )
  })
}

test('without Retry-After, pauses grow from 100 to 200 ms to 900 to 1,800 ms', async (t) => {
  const time = virtualTime(t)
  for (const [random, at] of [
    [0, [0, 200, 800, 2600]],
    [1, [0, 100, 400, 1300]],
  ] as const) {
    t.mock.method(Math, 'random', () => random)
    const { calls, fetch } = player([{ ms: 0, status: 503 }], time.now)
    const startedAt = time.now()
    await time.settle(clientOf(fetch).safeSend(email), 4_000)
    assert.deepEqual(
      calls.map((call) => call.at - startedAt),
      at,
    )
  }
})

test('a 202 is a success even if its body never ends', async (t) => {
  const time = virtualTime(t)
  const { calls, fetch } = player([{ ms: 0, status: 202, bodyHangs: true }], time.now)
  assert.equal((await time.settle(clientOf(fetch, { budgetMs: 300 }).safeSend(email), 300)).ok, true)
  assert.equal(calls.length, 1)
})

test('the caller’s signal ends an attempt, a pause, and a call that has not begun', async (t) => {
  const time = virtualTime(t)
  for (const step of [
    { ms: 0, status: -1 },
    { ms: 0, status: 503, retryAfter: '3' },
  ]) {
    const { calls, fetch } = player([step], time.now)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('canary')), 50)
    const startedAt = time.now()
    const sending: Promise<SendOutcome> = clientOf(fetch).safeSend(email, { signal: controller.signal })
    const outcome = await time.settle(sending, 60)
    assert.ok(time.now() - startedAt <= 51)
    assert.ok(!outcome.ok && outcome.error.code === 'aborted')
    assert.equal(calls.length, 1)
  }
  const { calls, fetch } = player([{ ms: 0, status: 202 }], time.now)
  await assert.rejects(clientOf(fetch).send(email, { signal: AbortSignal.abort() }), { code: 'aborted' })
  assert.equal(calls.length, 0)
})

test('a fetch that ignores its signal is left behind', async (t) => {
  const time = virtualTime(t)
  const deaf = (() => new Promise(() => {})) as typeof fetch
  const sending = clientOf(deaf, { maxRetries: 0 }).send(email)
  await assert.rejects(time.settle(sending, 2_500), { code: 'timeout' })
})
