/** Test emails whose app changes between the judgement and the queue. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { composeManagement } from '../../src/compose/management.ts'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import { localAccess } from '../../src/management/operation/access.ts'
import { newLocalRunner } from '../../src/management/perform.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { startTestService } from '../support/service.ts'

const service = await startTestService({ after }, { roles: new Set(['api']) })

/** Sends a test email by a store that changes the app just before each of its first emails is queued. */
async function sendTest(changes: readonly Partial<AppSettings>[]) {
  const { app, config, store } = service
  const left = [...changes]
  const enqueue: Store['enqueue'] = async (request) => {
    const change = left.shift()
    if (change !== undefined) await store.updateApp(app.id, { settings: { ...app.settings, ...change } }, operator)
    return store.enqueue(request)
  }
  const changing = new Proxy(store, {
    get(target, name) {
      const value = name === 'enqueue' ? enqueue : Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const { depth } = await store.measureQueue()
  const management = composeManagement(config, { store: changing, version: 'test' })
  const input = { params: { app: app.slug }, body: { to: 'you@example.com' } }
  const result = await newLocalRunner(management, localAccess('test')).call('app.test_email', input)
  return {
    answer: result.ok ? 'queued' : `${result.error.code}: ${result.error.message}`,
    queued: (await store.measureQueue()).depth - depth,
    unmade: left.length,
  }
}

test('an app that changes each time ends it with an answer, and nothing is queued', async () => {
  const names = Array.from({ length: 40 }, (_, n) => ({ name: `Name ${n}` }))
  const { answer, queued, unmade } = await sendTest(names)
  assert.match(answer, /^app_changing: The app \w+ is being changed; try again\.$/)
  assert.equal(queued, 0)
  assert.ok(unmade > 0, 'it gave up')
})

test('it is judged again by the settings that the app has then', async () => {
  assert.deepEqual(await sendTest([{ name: 'New Name' }]), { answer: 'queued', queued: 1, unmade: 0 })
  const { answer, queued } = await sendTest([{ allowedUrls: ['https://other.test'], appSchemes: [] }])
  assert.match(answer, /^test_email_refused: The test email was refused \(url_not_allowed\)/)
  assert.equal(queued, 0)
})
