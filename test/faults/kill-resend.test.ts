/**
 * `kill -9` around the hand-over to a mail API that knows repeated requests by their key, as Resend does:
 * every email answered 202 is sent, and none twice.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { type Asked, type Response, sendJson, startApiServer } from '../support/api-server.ts'
import { postern, spawnServe, startServe } from '../support/cli.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { send, validBody } from '../support/service.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const each = 14

type Held = { readonly asked: Asked; readonly response: Response }

/** Resend's contract for keys: https://resend.com/docs/dashboard/emails/idempotency-keys. */
async function startResend(scope: Scope) {
  const state = {
    /** Requests are kept back until a test ends them. */
    holds: false,
    held: [] as Held[],
    /** The references of the emails that were sent, in order. */
    sent: [] as string[],
    answers: { first: 0, repeated: 0, changed: 0, concurrent: 0 },
  }
  const known = new Map<string, { readonly body: string; isDone: boolean }>()
  /** Sends the email, unless its key was used. The result makes the answer. */
  const begin = ({ body, headers }: Asked): (() => readonly [status: number, body: object]) => {
    const key = headers['idempotency-key']?.toString()
    const id = String(JSON.parse(body).headers['X-Entity-Ref-ID']).split('.')[0] ?? ''
    const before = key === undefined ? undefined : known.get(key)
    const answer = (name: keyof typeof state.answers, status: number, value: object) => () => {
      state.answers[name] += 1
      return [status, value] as const
    }
    if (before !== undefined && !before.isDone) {
      before.isDone = true // it ends while the answer is on its way
      return answer('concurrent', 409, { name: 'concurrent_idempotent_requests', message: 'in progress' })
    }
    if (before !== undefined && before.body !== body)
      return answer('changed', 409, { name: 'invalid_idempotent_request', message: 'another body' })
    if (before !== undefined) return answer('repeated', 200, { id })
    if (key !== undefined) known.set(key, { body, isDone: true })
    state.sent.push(id)
    return answer('first', 200, { id })
  }
  const take = ({ asked, response }: Held) => {
    const [status, body] = begin(asked)()
    sendJson(response, status, body)
  }
  const { url } = await startApiServer(scope, (asked, response) => {
    if (state.holds) state.held.push({ asked, response })
    else take({ asked, response })
  })
  return {
    url,
    state,
    take,
    /** Sends the email; the answer does not come. */
    leave: ({ asked }: Held) => void begin(asked),
    /** Sends the email; the next request with its key finds this one in progress. */
    keepBusy: ({ asked }: Held) => {
      begin(asked)
      const one = known.get(asked.headers['idempotency-key']?.toString() ?? '')
      if (one !== undefined) one.isDone = false
    },
  }
}

type Resend = Awaited<ReturnType<typeof startResend>>

/** By kill: how far the relay has come with each request then. */
const ways: readonly ((resend: Resend, one: Held, index: number) => void)[] = [
  () => {}, // it has not read it
  ({ leave }, one) => leave(one),
  ({ take }, one) => take(one),
  ({ leave, take }, one, index) => (index % 2 === 0 ? leave : take)(one),
  ({ keepBusy }, one) => keepBusy(one),
]

const kills = 3 * ways.length

test(`${kills} kills with ${each} emails each at a relay that knows repeated requests: none lost, none twice`, async (t) => {
  const resend = await startResend(t)
  const { state } = resend
  const endpoint = encodeURIComponent(resend.url)
  // An app gets three quarters of the connections.
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `resend://re_key@api.resend.com?endpoint=${endpoint}&connections=${2 * each}&rate=100000`,
  })
  const store = await openStore(parseConfig(server.env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  const current = { child: server.child, api: server.api }
  const ids = new Set<string>()
  for (let kill = 0; kill < kills; kill++) {
    state.holds = true
    const posts = Array.from({ length: each }, (_, n) =>
      send(`${current.api}/v1/email`, JSON.stringify(validBody({ to: `k${kill}n${n}@example.com` })), {
        authorization: `Bearer ${server.key}`,
      }),
    )
    for (const { status, headers } of await Promise.all(posts)) {
      assert.equal(status, 202)
      ids.add(headers.get('email-id') ?? '')
    }
    await eventually(() => state.held.length === each)
    const ended = once(current.child, 'exit')
    const way = ways[kill % ways.length]
    for (const [index, one] of state.held.splice(0).entries()) way?.(resend, one, index)
    current.child.kill('SIGKILL')
    await ended
    state.holds = false
    // The repeated request then has another body.
    if (Math.floor(kill / ways.length) % 2 === 1)
      assert.equal((await postern(server.env, ['app', 'update', 'acme', '--name', `Acme ${kill}`])).code, 0)
    Object.assign(current, await spawnServe(t, server.env))
    await eventually(async () => (await store.readQueueGauge()).depth === 0)
  }
  const lost = ids.size - new Set(state.sent.filter((id) => ids.has(id))).size
  const duplicated = state.sent.length - new Set(state.sent).size
  t.diagnostic(`${kills} kills; answers: ${JSON.stringify(state.answers)}`)
  reportCounts(t, { tried: ids.size, lost, duplicated })
  assert.deepEqual([lost, duplicated], [0, 0])
  for (const [name, count] of Object.entries(state.answers)) assert.ok(count > 0, `${name}: ${count}`)
  const listed = await postern(server.env, ['email', 'list', '--limit', '500', '--json'])
  const states = (JSON.parse(listed.out) as { state: string }[]).map((email) => email.state)
  assert.deepEqual(new Set(states), new Set(['delivered']))
})
