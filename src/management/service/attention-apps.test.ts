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
  assert.match(found.find(({ kind }) => kind === 'mail_held')?.message ?? '', /globex is disabled and holds 5 emails/)
  const nodes = [node({ relays: [relay('r1', false)] })]
  const [stop] = findStops({ ...situation, nodes, queue: { ...situation.queue, apps } })
  assert.match(stop?.message ?? '', / 4 emails from acme are waiting/, 'held mail does not wait for a relay')
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
      .filter(({ kind }) => ['check_failed', 'no_worker'].includes(kind))
      .map(({ message }) => message)
  assert.deepEqual(messages({}), ['worker: mail has waited', 'file: damaged'])
  assert.equal(attentionTo({ findings }).find(({ kind }) => kind === 'no_worker')?.urgent, true)
  const nodes = [node({ relays: [relay('r1', false)] })]
  assert.deepEqual(messages({ nodes, depth: 1 }), ['file: damaged'])
})

test('a database that cannot be written is the first condition, and nothing is said of relays', () => {
  const findings = [
    { check: 'writes', ok: false, detail: 'database or disk is full' },
    { check: 'disk', ok: false, detail: '0.0 MiB free' },
    { check: 'worker', ok: false, detail: 'nothing is sent' },
  ]
  const nodes = [node({ relays: [relay('r1', false)], alive: false })]
  const [first, ...others] = attentionTo({ findings, nodes, depth: 2 })
  assert.deepEqual([first?.kind, first?.urgent, others], ['store_failing', true, []])
  assert.match(first?.message ?? '', /\(database or disk is full; 0\.0 MiB free\).* 2 emails wait\./)
  const [own] = attentionTo({ findings, nodes, depth: 2, seesAll: false })
  assert.match(own?.message ?? '', /^The database cannot be written, so requests are answered 503/)
})

test('an access for some apps reads nothing of the checks of the service', () => {
  const findings = ['keys', 'worker', 'disk'].map((check) => ({
    check,
    ok: false,
    detail: '/var/lib/postern',
  }))
  assert.deepEqual(attentionTo({ findings, seesAll: false }), [])
})

test('requests that a process could not queue are the first condition', () => {
  const fault = { what: 'queueing', since: ago(30), reason: 'could not extend file' } as const
  const nodes = [node({ faults: [fault] })]
  const [first] = attentionTo({ nodes })
  assert.deepEqual([first?.kind, first?.urgent], ['store_failing', true])
  assert.match(first?.message ?? '', /503 by the process on mail-1 for 30 s: could not extend file\./)
  assert.doesNotMatch(attentionTo({ nodes, seesAll: false })[0]?.message ?? '', /mail-1|extend/)
})

test('mail that waits for a key is urgent', () => {
  const findings = [{ check: 'keys', ok: false, detail: '6 emails wait for the key "old"' }]
  assert.deepEqual(
    attentionTo({ findings }).map(({ kind, message, urgent }) => [kind, message, urgent]),
    [['keys_missing', 'keys: 6 emails wait for the key "old"', true]],
  )
})

test('a relay that a process has not reported of for a while says so', () => {
  const seenAt = ago(20)
  const [found] = attentionTo({ nodes: [node({ relays: [relay('r1', false)], seenAt })], depth: 1 })
  assert.match(found?.message ?? '', /\(as its process reported 20 s ago\)/)
})

test('requests that were turned away are counted beside those that were at fault', () => {
  const [found] = attentionTo({
    counts: { accepted: 10, 'refused:queue_unavailable': 20, 'refused:url_not_allowed': 5 },
  })
  assert.match(found?.message ?? '', /^20 of 35 requests were answered 503/)
})
