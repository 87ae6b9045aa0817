/** A worker of its own on a real store and a real relay: lost leases, failed writes, an open breaker. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { Transport } from '../../../src/delivery/transport.ts'
import { Worker } from '../../../src/delivery/worker/worker.ts'
import { noReply } from '../../../src/domain/delivery/reply.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import type { PosternEvent } from '../../../src/observe/events.ts'
import { type Claim, type Lease, type Store, StoreUnavailable } from '../../../src/store/store.ts'
import { newTestRelay, relayTo, startTestService, validBody } from '../../support/service.ts'
import { startScriptedServer } from '../../support/smtp.ts'
import { atEnd } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

type WorkerOptions = ConstructorParameters<typeof Worker>[0]

/** A worker that does some things of the store in its own way. */
const newWorker = (
  store: Store,
  {
    relays,
    store: own,
    ...options
  }: Partial<Omit<WorkerOptions, 'store' | 'transports'>> &
    Pick<Transport, 'relays'> & { readonly store?: Partial<WorkerOptions['store']> },
): Worker =>
  new Worker({
    store: { ...store, ...own },
    random: Math.random,
    makeReference: store.makeReference,
    bounceAddress: null,
    transports: [{ name: null, relays, signing: null }],
    onUnknownTransports: () => {},
    onTrouble: async () => {},
    emit: () => {},
    ...options,
  })

test('after the store has said that a lease is lost, the message is not handed over', async (t) => {
  const waiting: Socket[] = []
  const server = await startScriptedServer(t, { data: (socket) => void waiting.push(socket) })
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const relay = newTestRelay(relayTo(server.port))
  const events: PosternEvent[] = []
  const renewals: number[] = []
  const leased: Lease[] = []
  const worker = newWorker(store, {
    store: {
      renewLeases: async (leases) => {
        leased.push(...leases)
        const lost = await store.renewLeases(leases)
        renewals.push(lost.length)
        return lost
      },
    },
    relays: [relay],
    emit: (event) => void events.push(event),
    renewEveryMs: 20,
  })
  assert.equal((await service.post(validBody())).status, 202)
  worker.start()
  atEnd(t, () => worker.stop(0))
  await eventually(() => waiting.length === 1 && leased.length > 0)
  const [held] = leased
  assert.ok(held)
  const reply = noReply('somebody else has the lease')
  const ended = { kind: 'deferred', reply, relay: null, ambiguous: false, waitMs: 3_600_000 } as const
  assert.equal(await store.recordOutcome(held, ended), true)
  await eventually(() => renewals.includes(1))
  waiting[0]?.write('354 go on\r\n')
  await eventually(() => events.some(({ kind }) => kind === 'outcome_unconfirmed'))
  assert.deepEqual(server.messages, [])
})

test('an outcome that could not be written is written again, although suspects wait', async (t) => {
  const server = await startScriptedServer(t, {})
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const failed = Promise.withResolvers<void>()
  let claims = 0
  let records = 0
  const worker = newWorker(store, {
    store: {
      claimDue: async (request) => {
        claims += 1
        if (claims === 1) return store.claimDue({ ...request, max: 1 })
        if (claims > 2) return store.claimDue(request)
        await failed.promise // the claim is under way while the write fails
        return { ...(await store.claimDue(request)), suspects: true }
      },
      recordOutcome: (lease, outcome) => {
        records += 1
        if (records > 1) return store.recordOutcome(lease, outcome)
        setImmediate(failed.resolve)
        return Promise.reject(new StoreUnavailable('one failure'))
      },
    },
    relays: [newTestRelay(relayTo(server.port))],
  })
  for (const to of ['a@example.com', 'b@example.com', 'c@example.com'])
    assert.equal((await service.post(validBody({ to }))).status, 202)
  worker.start()
  atEnd(t, () => worker.stop(0))
  await eventually(async () => (await store.readQueueGauge()).depth === 0)
  assert.equal(server.messages.length, 3, 'each was sent once')
})

test('mail whose claim is under way when the worker stops is given back before the stop ends', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const worker = newWorker(store, {
    relays: [newTestRelay(relayTo(1))],
  })
  assert.equal((await service.post(validBody())).status, 202)
  worker.start() // claims at once
  await worker.stop(0)
  const { claims } = await store.claimDue({ max: 9, perApp: 9, leases: [] })
  assert.deepEqual(
    claims.map(({ attempt }) => attempt),
    [1],
  )
})

test('a worker without mail asks every 250 ms; it yields to suspects only while it holds mail', async (t) => {
  const server = await startScriptedServer(t, { greeting: () => {} })
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const order: string[] = []
  const worker = newWorker(store, {
    store: {
      claimDue: async (request) => {
        if (order.length === 0) setTimeout(() => void order.push('125 ms'), 125)
        order.push(request.takeSuspect ? 'claim of a suspect' : 'claim')
        const claimed = await store.claimDue(request)
        if (claimed.claims.length > 0) setTimeout(() => void order.push('50 ms with mail'), 50)
        return { ...claimed, suspects: true }
      },
    },
    relays: [newTestRelay(relayTo(server.port))],
  })
  worker.start()
  atEnd(t, () => worker.stop(0))
  await eventually(() => order.length >= 3)
  assert.deepEqual(order.slice(0, 3), ['claim', '125 ms', 'claim'])
  await service.post(validBody())
  await eventually(() => order.includes('claim of a suspect'))
  const end = order.indexOf('claim of a suspect') + 1
  assert.deepEqual(order.slice(end - 3, end), ['claim', '50 ms with mail', 'claim of a suspect'])
  await eventually(() => order.length > end)
  assert.equal(order[end], 'claim', 'one suspect, and then others again')
})

test('a worker that took all there was does not ask again at once', async (t) => {
  const server = await startScriptedServer(t, { greeting: () => {} })
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  for (const more of [true, false]) {
    const order: string[] = []
    const worker = newWorker(store, {
      store: {
        claimDue: async (request) => {
          order.push('claim')
          const claimed = await store.claimDue(request)
          if (claimed.claims.length > 0) setImmediate(() => void order.push('a moment later'))
          return { ...claimed, more: more && claimed.claims.length > 0 }
        },
      },
      relays: [newTestRelay(relayTo(server.port))],
    })
    await service.post(validBody())
    worker.start()
    atEnd(t, () => worker.stop(0))
    await eventually(() => order.length >= 3)
    const expected = more ? ['claim', 'claim', 'a moment later'] : ['claim', 'a moment later', 'claim']
    assert.deepEqual(order.slice(0, 3), expected)
    await worker.stop(0)
  }
})

test('after a claim failed, nothing is sent until a write succeeds', async (t) => {
  const waiting: Socket[] = []
  const server = await startScriptedServer(t, { greeting: (socket) => void waiting.push(socket) })
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  let isDown = false
  let asked = 0
  const write = <T>(real: () => Promise<T>): Promise<T> => {
    asked += isDown ? 1 : 0
    return isDown ? Promise.reject(new StoreUnavailable('down')) : real()
  }
  const options = { ...relayTo(server.port), connectionsMax: 1 }
  const worker = newWorker(store, {
    store: {
      claimDue: (request) => write(() => store.claimDue(request)),
      recordOutcome: (lease, outcome) => write(() => store.recordOutcome(lease, outcome)),
      renewLeases: (leases) => write(() => store.renewLeases(leases)),
    },
    relays: [newTestRelay(options)],
    renewEveryMs: 20,
  })
  for (let n = 0; n < 3; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  worker.start()
  atEnd(t, () => worker.stop(0))
  await eventually(() => waiting.length === 1)
  isDown = true
  await eventually(() => asked > 0)
  waiting[0]?.write('220 ready\r\n')
  await eventually(() => server.messages.length === 1)
  const before = asked
  await eventually(() => asked > before + 3) // it tried to write, and began no other email
  assert.equal(server.messages.length, 1)
  isDown = false
  await eventually(async () => (await store.readQueueGauge()).depth === 0)
})

test('after an outage, leases are renewed before waiting mail begins: what was lost meanwhile never begins', async (t) => {
  const sockets: Socket[] = []
  const server = await startScriptedServer(t, { dot: (socket) => void sockets.push(socket) })
  const answer = (n: number) => eventually(() => sockets[n]?.write('250 2.0.0 taken\r\n'))
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const { store } = service
  const claimed: Claim[] = []
  const begun: EmailId[] = []
  const secondEnded = Promise.withResolvers<void>()
  let writes = 0
  let renewals = 0
  const writeFirst = async (real: () => Promise<boolean>): Promise<boolean> => {
    writes += 1
    if (writes === 1) {
      await eventually(() => begun.length === 2)
      throw new StoreUnavailable('one failure')
    }
    await answer(1)
    await secondEnded.promise
    const third = claimed.find(({ emailId }) => !begun.includes(emailId)) ?? assert.fail()
    assert.equal(await store.recordOutcome(third, { kind: 'expired' }), true)
    return real()
  }
  const worker = newWorker(store, {
    store: {
      claimDue: async (request) => {
        const found = await store.claimDue({ ...request, max: 3, perApp: 3 })
        claimed.push(...found.claims)
        return found
      },
      recordOutcome: async (lease, outcome) => {
        const real = () => store.recordOutcome(lease, outcome)
        return lease.emailId === begun[0] ? writeFirst(real) : real().finally(secondEnded.resolve)
      },
      renewLeases: (leases) => store.renewLeases(leases).finally(() => renewals++),
    },
    relays: [newTestRelay({ ...relayTo(server.port), connectionsMax: 1 })],
    makeReference: (id) => {
      begun.push(id)
      return store.makeReference(id)
    },
  })
  for (let n = 0; n < 3; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  worker.start()
  atEnd(t, () => worker.stop(0))
  await answer(0)
  await eventually(() => renewals > 0)
  assert.equal(begun.length, 2)
})
