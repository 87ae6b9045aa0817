import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTestService } from '../../test/support/service.ts'
import { eventually } from '../../test/support/wait.ts'
import { appMinutesKept } from '../domain/bounds.ts'
import { recentOutages } from '../domain/delivery/kept-outages.ts'
import type { RelayState } from '../domain/delivery/relay-state.ts'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import { minuteMs } from '../domain/duration.ts'
import { newId } from '../domain/id.ts'
import type { ActivityRow } from '../domain/operator/activity.ts'
import type { KeptCheck } from '../store/activity-store.ts'
import { StoreUnavailable } from '../store/store.ts'
import { type AttemptRecorded, EventStream, type PosternEvent } from './events.ts'
import { Recorder } from './recorder.ts'

const { store } = await startTestService({ after }, { roles: new Set(['api']) })
const checks = { findCheck: store.findCheck, swapCheck: store.swapCheck }

test('the first count after a quiet time is written soon, the next five seconds later', async (t) => {
  const written: ActivityRow[][] = []
  const events = new EventStream()
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const recorder = new Recorder({
    store: {
      ...{ now: store.now, addRefusals: store.addRefusals, ...checks },
      addActivity: async (rows) => void written.push([...rows]),
      noteNode: async () => {},
      removeNode: async () => {},
    },
    events,
    node: { id: newId('node', store.now()), machine: 'm', version: '1', roles: [], startedAt: store.now() },
    relays: () => [],
    linesLost: () => 0,
    queueing: { findFault: () => null },
  })
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    for (let n = 0; n < 5; n++) await setImmediate()
    return written.length
  }
  const lose = () => events.emit({ kind: 'leases_taken_back', lost: [{ emailId: newId('em', 0), count: 1 }] })
  events.emit({ kind: 'standby_changed', standby: true }) // is not counted, so it delays no count
  assert.equal(await pass(300), 0)
  lose()
  lose()
  assert.equal(await pass(200), 0)
  assert.equal(await pass(100), 1)
  assert.deepEqual(
    written[0]?.map(({ event, count }) => [event, count]),
    [['lost', 2]],
  )
  lose()
  assert.equal(await pass(2000), 1)
  assert.equal(await pass(3000), 2)
  await recorder.stop()
})

test('a relay is tried once an attempt with it has ended, and the process says so at once', async (t) => {
  const noted: boolean[][] = []
  const events = new EventStream()
  const connections = () => ({ connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 })
  const newRelay = (name: string) => ({
    ...{ name, certificateExpiresAt: null, connections },
    isAvailable: () => true,
  })
  const relays = [newRelay('r1'), newRelay('r2')]
  const recorder = new Recorder({
    store: {
      ...{ now: store.now, addRefusals: store.addRefusals, ...checks, addActivity: store.addActivity },
      noteNode: async ({ relays }) => void noted.push(relays.map(({ tried }) => tried)),
      removeNode: async () => {},
    },
    events,
    node: { id: newId('node', store.now()), machine: 'm', version: '1', roles: [], startedAt: store.now() },
    relays: () => relays,
    linesLost: () => 0,
    queueing: { findFault: () => null },
  })
  t.after(() => recorder.stop())
  recorder.start()
  const ids = { emailId: newId('em', 0), appId: newId('app', 0) }
  const attempt = (outcome: AttemptRecorded['outcome']) =>
    events.emit({
      ...{ kind: 'attempt_recorded', ...ids, type: 'magic_link', attempt: 1, traceId: null },
      ...{ outcome, sinceAcceptedMs: 1, tookMs: 1 },
    })
  const reply = parseReply('250 ok')
  await eventually(async () => noted.length === 1)
  attempt({ kind: 'unattempted', reply, relay: null, waitMs: 1 })
  attempt({ kind: 'expired' })
  attempt({ kind: 'delivered', reply, relay: 'r2' })
  await eventually(async () => noted.length === 2)
  attempt({ kind: 'delivered', reply, relay: 'r2' })
  events.emit({ kind: 'relay_changed', relay: 'r1', available: false, reason: 'ECONNREFUSED' })
  await eventually(async () => noted.length === 3)
  assert.deepEqual(noted, [
    [false, false],
    [false, true],
    [true, true],
  ])
})

/** A recorder whose store takes all, but for what is given. */
function newSubject(given: Partial<ConstructorParameters<typeof Recorder>[0]['store']> = {}) {
  const clock = { ms: 1000 }
  let kept: KeptCheck | null = null
  const notes: RelayState[][] = []
  const seen: PosternEvent[] = []
  const events = new EventStream()
  events.subscribe((event) => void seen.push(event))
  const connections = () => ({ connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 })
  const relays = [{ name: 'r1', certificateExpiresAt: null, connections, isAvailable: () => true }]
  const recorder = new Recorder({
    store: {
      ...{ now: () => clock.ms, addRefusals: async () => {}, addActivity: async () => {} },
      findCheck: async () => kept,
      swapCheck: async (_, __, result) => {
        kept = { at: 0, result }
        return true
      },
      ...{ noteNode: async ({ relays }) => void notes.push([...relays]), removeNode: async () => {} },
      ...given,
    },
    events,
    node: { id: newId('node', 0), machine: 'm', version: '1', roles: [], startedAt: 0 },
    relays: () => relays,
    linesLost: () => 0,
    queueing: { findFault: () => null },
  })
  const settle = async () => {
    for (let n = 0; n < 5; n++) await setImmediate()
  }
  const listKept = () =>
    recentOutages(kept, clock.ms).map(({ from, reason, relay, until }) => [relay, from, until, reason])
  return { clock, events, listKept, notes, recorder, seen, settle }
}

test('a process says every ten seconds that it lives, until it stops', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { notes, recorder, settle } = newSubject()
  recorder.start()
  await settle()
  for (let passed = 0; passed < 2; passed++) {
    t.mock.timers.tick(10_000)
    await settle()
  }
  assert.equal(notes.length, 3)
  await recorder.stop()
  t.mock.timers.tick(30_000)
  await settle()
  assert.equal(notes.length, 3)
})

test('the last outage of a relay is from when it went away to when it came back', async (t) => {
  const { clock, events, notes, recorder, settle } = newSubject()
  t.after(() => recorder.stop())
  const delivered: AttemptRecorded = {
    ...{ kind: 'attempt_recorded', emailId: newId('em', 0), appId: newId('app', 0), type: 'magic_link', attempt: 1 },
    ...{ traceId: null, sinceAcceptedMs: 1, tookMs: 1 },
    outcome: { kind: 'delivered', reply: parseReply('250 ok'), relay: 'r1' },
  }
  for (const [ms, available] of [
    [2000, false],
    [3000, true],
    [4000, false],
    [6000, true],
  ] as const) {
    clock.ms = ms
    events.emit({ kind: 'relay_changed', relay: 'r1', available, reason: available ? '' : `at ${ms}` })
    await settle()
    // An email that the relay accepts shows that the outage is over.
    if (available) events.emit(delivered)
  }
  const [first, second] = [
    { from: 2000, until: 3000, reason: 'at 2000' },
    { from: 4000, until: 6000, reason: 'at 4000' },
  ]
  assert.deepEqual(
    notes.map(([relay]) => [relay?.since, relay?.reason, relay?.lastOutage]),
    [
      [2000, 'at 2000', null],
      [3000, '', first],
      [4000, 'at 4000', first],
      [6000, '', second],
    ],
  )
})

test('outages are kept for all processes, and one that goes on is not over', async (t) => {
  const { clock, events, listKept, recorder, settle } = newSubject()
  t.after(() => recorder.stop())
  const change = async (ms: number, available: boolean) => {
    clock.ms = ms
    events.emit({ kind: 'relay_changed', relay: 'r1', available, reason: available ? '' : 'ETIMEDOUT' })
    await settle()
    return listKept()
  }
  assert.deepEqual(await change(2000, false), [])
  assert.deepEqual(await change(3000, true), [['r1', 2000, 3000, 'ETIMEDOUT']])
  assert.deepEqual(await change(4000, false), [], 'no email was accepted: the same outage')
  assert.deepEqual(await change(5000, true), [['r1', 2000, 5000, 'ETIMEDOUT']])
  clock.ms = 5000 + appMinutesKept * minuteMs
  assert.deepEqual(listKept(), [], 'hours later')
})

test('a store that is away is no bug of the recorder; anything else is', async () => {
  for (const [error, bugs] of [
    [new StoreUnavailable('away'), 0],
    [new TypeError('ours'), 1],
  ] as const) {
    const { events, recorder, seen } = newSubject({ addActivity: () => Promise.reject(error) })
    events.emit({ kind: 'leases_taken_back', lost: [{ emailId: newId('em', 0), count: 1 }] })
    await recorder.stop() // writes what is left
    assert.equal(seen.filter(({ kind }) => kind === 'bug').length, bugs, error.name)
  }
})
