import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTestService } from '../../../../test/support/service.ts'
import { newId } from '../../../domain/id.ts'
import { newFingerprints } from '../../../management/fingerprints.ts'
import { newQueueCounts } from '../../../management/shared-counts.ts'
import { EventStream } from '../../../observe/events.ts'
import { html } from '../../../templates/html.ts'
import { Live } from './live.ts'

/**
 * A browser that listens to an email, or to the service as `describeService` has it, through a server on a
 * socket; time stands still until the test moves it.
 */
async function openStream(
  t: TestContext,
  {
    isSignedIn = async () => true,
    describeService,
  }: { isSignedIn?: () => Promise<boolean>; describeService?: () => Promise<string> } = {},
) {
  const { store, app } = await startTestService(t)
  const events = new EventStream()
  const fingerprints = newFingerprints({ store, queue: newQueueCounts(store) })
  const live = new Live({ ...fingerprints, ...(describeService && { describeService }) }, events)
  const emailId = newId('em', 0)
  const topic = describeService === undefined ? `email:${emailId}` : 'service'
  const faults: Error[] = []
  const server = createServer((_, response) => {
    response.on('error', (error) => faults.push(error))
    live.streams.open(response, { topic, person: 'ada', isSignedIn })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const ended = [{ emailId, appId: app.id, state: 'cancelled', reason: null }] as const
  const change = () => events.emit({ kind: 'emails_ended', ended })
  return { live, change, answer, faults }
}

test('a change is signalled once, a moment later', async (t) => {
  const { live, change, answer } = await openStream(t)
  change()
  change()
  t.mock.timers.tick(1000)
  live.streams.close()
  t.mock.timers.reset()
  assert.equal(await answer.text(), 'retry: 3000\n\nevent: changed\ndata:\n\n')
})

test('a stream that ends before the signal of a change is written to no more', async (t) => {
  const { live, change, answer, faults } = await openStream(t)
  change()
  live.streams.close()
  t.mock.timers.tick(1000)
  t.mock.timers.reset()
  assert.equal(await answer.text(), 'retry: 3000\n\n')
  assert.deepEqual(faults, [])
})

test('a stream ends with its session', async (t) => {
  const { answer } = await openStream(t, { isSignedIn: async () => false })
  t.mock.timers.tick(20_000)
  assert.equal(await answer.text(), 'retry: 3000\n\n')
  t.mock.timers.reset()
})

test('a stream that is asked for after the end of all ends at once', async (t) => {
  const { live, answer } = await openStream(t)
  live.streams.close()
  assert.equal(await answer.text(), 'retry: 3000\n\n')
  const late = await fetch(answer.url)
  assert.equal(live.streams.areOpen, false)
  assert.equal(await late.text(), 'retry: 3000\n\n')
  t.mock.timers.reset()
})

test('the service is compared every five seconds, and signalled when it has changed', async (t) => {
  const seen = { service: 'one', comparisons: 0 }
  const describeService = async () => {
    seen.comparisons++
    return seen.service
  }
  const { live, answer } = await openStream(t, { describeService })
  for (const service of ['one', 'one', 'two']) {
    seen.service = service
    t.mock.timers.tick(5000)
    await setImmediate() // it has been compared
    t.mock.timers.tick(1000)
  }
  live.streams.close()
  t.mock.timers.reset()
  assert.equal(seen.comparisons, 3)
  assert.equal(await answer.text(), `retry: 3000\n\n${'event: changed\ndata:\n\n'.repeat(2)}`)
})

test('a part that all see alike is drawn once for those who watch, and for each while nobody does', async (t) => {
  const { live, answer } = await openStream(t)
  let drawings = 0
  const draw = async () => html`${++drawings}`
  const [one, two] = [await live.share('x', draw), await live.share('x', draw)]
  assert.deepEqual([one?.text, two?.text], ['1', '1'])
  live.streams.close()
  const [three, four] = [await live.share('x', draw), await live.share('x', draw)]
  assert.deepEqual([three?.text, four?.text], ['2', '3'])
  t.mock.timers.reset()
  await answer.text()
})
