import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTestService } from '../../test/support/service.ts'
import { newId } from '../domain/id.ts'
import type { ActivityRow } from '../domain/operator/activity.ts'
import { EventStream } from './events.ts'
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
