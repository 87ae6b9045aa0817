/** A worker of its own: how it stops, composes, makes room for requests and holds suspects. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Worker } from '../../src/delivery/worker/worker.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { PosternEvent } from '../../src/observe/events.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { newTestRelay, relayTo, startTestService, type TestService, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

/** A worker of its own on the store of a service, some methods of which are replaced. */
async function startWorker(
  t: TestContext,
  change: (store: TestService['store']) => Partial<ConstructorParameters<typeof Worker>[0]>,
  script: Parameters<typeof startScriptedServer>[1] = {},
) {
  const server = await startScriptedServer(t, script)
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const events: PosternEvent[] = []
  const worker = new Worker({
    ...{ store, random: Math.random },
    transports: [{ name: null, relays: [newTestRelay(relayTo(server.port))], signing: null }],
    ...{
      makeReference: store.makeReference,
      bounceAddress: null,
      onTrouble: async () => {},
      onUnknownTransports: () => {},
    },
    emit: (event) => void events.push(event),
    ...change(store),
  })
  let ended: Promise<void> | null = null
  const stop = () => {
    ended ??= worker.stop(0)
    return ended
  }
  atEnd(t, stop)
  const post = async (to = 'ada@example.com') => {
    const answer = await service.post(validBody({ to }))
    return answer.headers.get('email-id') as EmailId
  }
  return { events, post, server, service, stop, store, worker }
}

test('outcomes that could not be written are written before a worker has stopped, or their number is reported', async (t) => {
  for (const [name, works, unrecorded] of [
    ['the store comes back', true, []],
    ['it stays away', false, [1]],
  ] as const) {
    let isStopping = false
    let failures = 0
    const { events, post, stop, store, worker } = await startWorker(t, (real) => ({
      store: {
        ...real,
        recordOutcome: (lease, outcome) => {
          if (isStopping && works) return real.recordOutcome(lease, outcome)
          failures += 1
          return Promise.reject(new StoreUnavailable('down'))
        },
      },
    }))
    const id = await post()
    worker.start()
    await eventually(() => failures > 0)
    isStopping = true
    await stop()
    assert.equal((await store.findEmail(id))?.state, works ? 'delivered' : 'sending', name)
    const counts = events.flatMap((event) => (event.kind === 'attempts_unrecorded' ? [event.count] : []))
    assert.deepEqual(counts, unrecorded, name)
  }
})

test('an email that cannot be composed is deferred as our fault, without doubt and without harm to others', async (t) => {
  let made = 0
  const { events, post, store, worker } = await startWorker(t, (real) => ({
    makeReference: (id) => {
      if (made++ === 0) throw new TypeError('ours')
      return real.makeReference(id)
    },
  }))
  const ids = [await post('a@example.com'), await post('b@example.com')]
  worker.start()
  const states = async () => (await Promise.all(ids.map((id) => store.findEmail(id)))).map((email) => email?.state)
  await eventually(async () => (await states()).toSorted().join() === 'deferred,delivered')
  const emails = await Promise.all(ids.map((id) => store.findEmail(id)))
  const last = emails.find((email) => email?.state === 'deferred')?.trail.at(-1)
  assert.equal(last?.reply?.text, 'internal error, see the log')
  assert.notEqual(last?.ambiguous, true)
  const bugs = events.flatMap((event) => (event.kind === 'bug' ? [event.doing] : []))
  assert.equal(bugs.length, 1)
  assert.match(bugs[0] ?? '', /^rendering or sending em_/)
  assert.ok(!events.some(({ kind }) => kind === 'emails_ended'), 'no claim ended an email itself')
})

test('requests that wait go on as emails leave the queue, and not for those that are deferred', async (t) => {
  const replies = { later: '450 4.2.0 later', ada: '250 2.1.5 ok', nobody: '550 5.1.1 nobody' }
  let ends = 0
  const started = await startWorker(t, () => ({}), {
    rcpt: (socket) => {
      const [, name = ''] = /<(\w+)@/.exec(started.server.transcript.at(-1) ?? '') ?? []
      socket.write(`${Reflect.get(replies, name)}\r\n`)
    },
  })
  const { post, store, worker } = started
  t.mock.method(worker.backpressure, 'noteEnd', () => void ends++)
  worker.start()
  for (const [name, state, expected] of [
    ['ada', 'delivered', 1],
    ['nobody', 'failed', 2],
    ['later', 'deferred', 2],
    ['ada', 'delivered', 3],
  ] as const) {
    const id = await post(`${name}@example.com`)
    await eventually(async () => (await store.findEmail(id))?.state === state)
    await eventually(() => ends >= expected)
    assert.equal(ends, expected, name)
  }
})

test('a claim that begins ends, even if it fails: no request waits for one that is over', async (t) => {
  const { worker } = await startWorker(t, (real) => ({
    store: { ...real, claimDue: () => Promise.reject(new StoreUnavailable('the disk is full')) },
  }))
  const notes: string[] = []
  t.mock.method(worker.backpressure, 'noteClaimBegins', () => void notes.push('begins'))
  t.mock.method(worker.backpressure, 'noteClaim', (...shown: number[]) => void notes.push(`shows ${shown}`))
  worker.start()
  await eventually(() => notes.length >= 2)
  assert.deepEqual(notes.slice(0, 2), ['begins', 'shows 0,0'])
})

test('a suspect whose relay hangs does not keep a worker from other mail', async (t) => {
  const claimed: EmailId[] = []
  const { post, worker } = await startWorker(
    t,
    (real) => ({
      store: {
        ...real,
        claimDue: async (request) => {
          const found = await real.claimDue(request)
          claimed.push(...found.claims.map(({ emailId }) => emailId))
          return { ...found, claims: found.claims.map((claim) => ({ ...claim, isSuspect: true })) }
        },
      },
    }),
    { greeting: () => {} },
  )
  const suspect = await post('a@example.com')
  worker.start()
  await eventually(() => claimed.includes(suspect))
  const other = await post('b@example.com')
  await eventually(() => claimed.includes(other))
})
