import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acme, ago, type Given, globex, newSituation, node, relay } from '../../../test/support/attention.ts'
import { findAttention } from './attention.ts'
import { findStops } from './attention-nodes.ts'

const attentionTo = (situation: Given) => findAttention(newSituation(situation))

test('mail that a disabled app holds is counted, also what was deferred before', () => {
  const disabled = { ...globex, status: 'disabled' } as const
  const situation = newSituation({ apps: [acme, disabled], depth: 9, held: 2 })
  const apps = situation.queue.apps.map((row) => (row.held ? { ...row, deferred: 3 } : row))
  const found = findAttention({ ...situation, queue: { ...situation.queue, apps } })
  assert.match(
    found.find(({ kind }) => kind === 'mail_held')?.message ?? '',
    /globex is disabled and holds 5 emails/,
  )
  const nodes = [node({ relays: [relay('r1', false)] })]
  const [stop] = findStops({ ...situation, nodes, queue: { ...situation.queue, apps } })
  assert.match(stop?.message ?? '', / 4 emails from 1 app are waiting/, 'held mail does not wait for a relay')
})

test('the first expiry is shown only while it is in the future', () => {
  const nodes = [node({ relays: [relay('r1', false)] })]
  const [found] = attentionTo({ nodes, depth: 3, firstExpiresAt: ago(240) })
  assert.match(found?.message ?? '', /3 emails are waiting\. Sending/)
})

test('entries that are no longer valid are named', () => {
  const settings = {
    ...acme.settings,
    allowedUrls: ['https://app.acme.test', 'nonsense'],
    appSchemes: ['x y'],
  }
  const [found, ...more] = attentionTo({ apps: [{ ...acme, settings }] })
  assert.deepEqual([found?.kind, found?.apps, more], ['setting_invalid', ['acme'], []])
  assert.match(found?.message ?? '', /refused: nonsense, x y\. Replace or remove them/)
})

test('a failed check is reported unless a stop explains it', () => {
  const findings = [
    { check: 'worker', ok: false, detail: 'mail has waited' },
    { check: 'clock', ok: true, detail: 'right' },
    { check: 'file', ok: false, detail: 'damaged' },
  ]
  const messages = (given: Given) =>
    attentionTo({ findings, ...given })
      .filter(({ kind }) => kind === 'check_failed')
      .map(({ message }) => message)
  assert.deepEqual(messages({}), ['worker: mail has waited', 'file: damaged'])
  const nodes = [node({ relays: [relay('r1', false)] })]
  assert.deepEqual(messages({ nodes, depth: 1 }), ['file: damaged'])
})

test('requests that were turned away are counted beside those that were at fault', () => {
  const [found] = attentionTo({
    counts: { accepted: 10, 'refused:queue_unavailable': 20, 'refused:url_not_allowed': 5 },
  })
  assert.match(found?.message ?? '', /^20 of 35 requests were answered 503/)
})
