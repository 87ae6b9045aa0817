import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testSettings } from '../../../test/support/service.ts'
import type { App } from '../../domain/app/app.ts'
import { minuteMs } from '../../domain/duration.ts'
import { newId } from '../../domain/id.ts'
import { gone } from '../../domain/webhooks/webhook.ts'
import type { ReceiverRecord } from '../../store/webhook-store.ts'
import { findWebhookFaults } from './judge-webhooks.ts'

const nowMs = Date.UTC(2026, 10, 25)
const app: App = {
  ...{ id: newId('app', 0), slug: 'acme', version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
  settings: { ...testSettings, webhookUrl: 'https://app.acme.test/postern' },
}
const receiver: ReceiverRecord = { app: app.id, sealed: 's', old: [], failingSince: null, result: null }
const messages = (change: Partial<ReceiverRecord> | null, of = app): string[] => {
  const found = findWebhookFaults([of], change === null ? [] : [{ ...receiver, ...change }], nowMs)
  assert.ok(found.every((fault) => fault.app === 'acme'))
  return found.map(({ message }) => message)
}

test('a receiver that fails for ten minutes is reported, and one that is gone at once', () => {
  const failing = (minutes: number, result = '500') => messages({ failingSince: nowMs - minutes * minuteMs, result })
  assert.deepEqual([messages({}), messages({ result: '204' }), failing(9)], [[], [], []])
  assert.deepEqual(failing(11), [
    'The webhook receiver of acme has failed for 11 min (500). Its messages wait and are tried again.',
  ])
  assert.match(failing(0, gone)[0] ?? '', /answers 410, so its messages are given up/)
})

test('an address without a secret is reported; an app without an address, or that is disabled, is not', () => {
  assert.match(messages(null)[0] ?? '', /has a webhook address and no secret/)
  const { webhookUrl: _, ...without } = app.settings
  assert.deepEqual(messages(null, { ...app, settings: without }), [])
  assert.deepEqual(messages(null, { ...app, status: 'disabled' }), [])
  assert.deepEqual(messages({ failingSince: 1, result: '500' }, { ...app, status: 'disabled' }), [])
})
