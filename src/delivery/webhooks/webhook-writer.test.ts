import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { WebhookWriter } from './webhook-writer.ts'

const app = newId('app', 0)
const content = {
  to: 'ada@example.com' as EmailAddress,
  url: 'https://acme.test/',
  messageIdDomain: 'acme.test',
}
const newEmail = () => ({ id: newId('em', 0), type: 'magic_link', content }) as const

test('more than 64 messages at once, those that find no room, and those of a failing store are lost, and said so', async () => {
  const lost: string[] = []
  const answers = { next: Promise.resolve<'full' | 'unwanted'>('unwanted') }
  const writer = new WebhookWriter({
    store: { addWebhookMessage: () => answers.next },
    seal: (_email, to) => `sealed ${to.length}`,
    emit: (event) => void lost.push(event.kind),
  })
  const add = () => writer.add('email.failed', app, newEmail())
  await add()
  assert.deepEqual(lost, [], 'the app wants none')
  const waiting = Promise.withResolvers<'unwanted'>()
  answers.next = waiting.promise
  const added = Array.from({ length: 66 }, add)
  assert.deepEqual(lost, ['webhook_lost', 'webhook_lost'])
  waiting.resolve('unwanted')
  await Promise.all(added)
  answers.next = Promise.resolve('full')
  await add()
  assert.equal(lost.length, 3)
  answers.next = Promise.reject(new StoreUnavailable('down'))
  await add()
  assert.deepEqual(
    lost,
    Array.from({ length: 4 }, () => 'webhook_lost'),
  )
  answers.next = Promise.reject(new TypeError('a bug'))
  await add()
  assert.deepEqual(lost.slice(4), ['bug', 'webhook_lost'])
})
