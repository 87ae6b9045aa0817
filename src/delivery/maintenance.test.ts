import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newId } from '../domain/id.ts'
import type { PosternEvent } from '../observe/events.ts'
import { StoreUnavailable } from '../store/store.ts'
import { startMaintenance } from './maintenance.ts'

test('a step every five seconds, the next one soon while there is more, and none after the stop', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ended = [{ emailId: newId('em', 0), appId: newId('app', 0), state: 'expired', reason: null }] as const
  const steps = [
    async () => ({ more: true, ended }),
    async () => ({ more: false, ended: [] }),
    () => Promise.reject(new StoreUnavailable('away')),
    () => Promise.reject(new TypeError('ours')),
  ]
  let count = 0
  const seen: PosternEvent[] = []
  const stop = startMaintenance(
    {
      maintain: () => steps[count++]?.() ?? Promise.resolve({ more: false, ended: [] }),
      listMissingKeys: async () => [{ keyId: 'old', emails: 3 }],
      now: () => Date.now(),
      retryDeferred: async () => assert.fail('the clock was not set back'),
    },
    (event) => void seen.push(event),
  )
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await setImmediate()
    return count
  }
  assert.deepEqual([await pass(4999), await pass(1)], [0, 1])
  assert.deepEqual([await pass(19), await pass(1)], [1, 2], 'there was more')
  assert.deepEqual([await pass(4999), await pass(1)], [2, 3])
  assert.deepEqual([await pass(5000), await pass(5000)], [4, 5], 'a failure ends nothing')
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['emails_ended', 'key_missing', 'bug'],
  )
  stop()
  assert.equal(await pass(5000), 5)
})

test('after the clock was set back, deferred mail is due, once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let wallMs = 10_000_000
  const retried: (string | null)[] = []
  const second = newId('em', 0)
  const stop = startMaintenance(
    {
      maintain: async () => ({ more: false, ended: [] }),
      listMissingKeys: async () => [],
      now: () => wallMs,
      async retryDeferred(_apps, after) {
        retried.push(after)
        return { retried: 500, next: after === null ? second : null }
      },
    },
    () => {},
  )
  t.after(stop)
  const pass = async (byMs: number) => {
    wallMs += byMs
    t.mock.timers.tick(5000)
    for (let n = 0; n < 5; n++) await setImmediate()
    return retried.length
  }
  assert.deepEqual([await pass(1000), await pass(3_600_000), await pass(-30_000)], [0, 0, 0])
  assert.equal(await pass(-3_600_000), 2)
  assert.deepEqual(retried, [null, second])
  assert.equal(await pass(1000), 2)
})
