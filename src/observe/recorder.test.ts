import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTestService } from '../../test/support/service.ts'
import { eventually } from '../../test/support/wait.ts'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import { newId } from '../domain/id.ts'
import type { ActivityRow } from '../domain/operator/activity.ts'
import { type AttemptRecorded, EventStream } from './events.ts'
import { Recorder } from './recorder.ts'

const { store } = await startTestService({ after }, { roles: new Set(['api']) })

test('the first count after a quiet time is written soon, the next five seconds later', async (t) => {
  const written: ActivityRow[][] = []
  const events = new EventStream()
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const recorder = new Recorder({
    store: {
      ...{ now: store.now, addRefusals: store.addRefusals },
      addActivity: async (rows) => void written.push([...rows]),
      noteNode: async () => {},
      removeNode: async () => {},
    },
    events,
    node: { id: newId('node', store.now()), machine: 'm', version: '1', roles: [], startedAt: store.now() },
    relays: [],
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
  const recorder = new Recorder({
    store: {
      ...{ now: store.now, addRefusals: store.addRefusals, addActivity: store.addActivity },
      noteNode: async ({ relays }) => void noted.push(relays.map(({ tried }) => tried)),
      removeNode: async () => {},
    },
    events,
    node: { id: newId('node', store.now()), machine: 'm', version: '1', roles: [], startedAt: store.now() },
    relays: [newRelay('r1'), newRelay('r2')],
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
