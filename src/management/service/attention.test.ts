import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { App } from '../../domain/app/app.ts'
import { defaultSettings } from '../../domain/app/settings.ts'
import type { AppId } from '../../domain/id.ts'
import type { NodeResource } from '../resources.ts'
import { findAttention } from './attention.ts'

const nowMs = Date.UTC(2026, 0, 1)
const ago = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()

const relay = (name: string, available: boolean): NodeResource['relays'][number] => ({
  name,
  available,
  since: ago(720),
  reason: available ? '' : 'ECONNREFUSED',
  connections: { connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 },
})

const node = (change: Partial<NodeResource> = {}): NodeResource => ({
  id: 'node_1',
  machine: 'mail-1',
  version: '1',
  roles: ['worker'],
  startedAt: ago(3600),
  seenAt: ago(1),
  alive: true,
  relays: [relay('r1', true), relay('r2', true)],
  ...change,
})

type Given = Partial<Pick<Parameters<typeof findAttention>[0], 'apps' | 'late' | 'nodes'>> & {
  readonly depth?: number
  readonly accepted?: number
  readonly refused?: Readonly<Record<string, number>>
  readonly countedAgoS?: number
}

function attentionTo({ depth = 0, accepted = 100, refused = {}, countedAgoS = 0, ...given }: Given) {
  const counts = { queued: depth, sending: 0, deferred: 0 }
  const queue = {
    ...{ depth, max: 1000, oldestAcceptedAt: null, oldestAgeSeconds: 0, nextAttemptAt: null },
    ...{ states: counts, apps: [], countedAt: ago(countedAgoS) },
  }
  const none = { apps: [], usage: new Map(), expiring: [], late: [], findings: [], nodes: [node()] }
  return findAttention({ ...none, ...given, queue, answers: { accepted, refused }, expiredLately: 0, nowMs })
}
const kinds = (situation: Given) => attentionTo(situation).map(({ kind }) => kind)

test('processes and relays that are well need nothing', () => {
  assert.deepEqual(kinds({}), [])
  assert.deepEqual(kinds({ nodes: [] }), [])
})

test('one relay of two warns, and says how mail goes; none left is the first condition', () => {
  const down = [relay('r1', false), relay('r2', true)]
  const [one] = attentionTo({ nodes: [node({ relays: down })] })
  assert.equal(one?.kind, 'relay_down')
  assert.match(
    one.message,
    /r1, seen from mail-1, has not answered for 12 min: ECONNREFUSED\. Mail goes by the others/,
  )
  const relays = [relay('r1', false), relay('r2', false)]
  assert.deepEqual(kinds({ nodes: [node({ relays })], refused: { queue_full: 3 } }), [
    'no_relay',
    'requests_turned_away',
  ])
})

test('a relay that one worker alone cannot reach is down for that one', () => {
  const other = node({ machine: 'mail-2', relays: [relay('r1', false)] })
  const [found] = attentionTo({ nodes: [node({ relays: [relay('r1', true)] }), other] })
  assert.match(found?.message ?? '', /^The relay r1, seen from mail-2, has not answered/)
})

test('mail is late by the moment of its count, however long the count is kept', () => {
  const app: App = {
    ...{ id: 'app_x' as AppId, slug: 'acme', version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
    settings: { ...defaultSettings, name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } },
  }
  const since = (countedAgoS: number, waitedS: number) => {
    const late = [{ app: app.id, since: nowMs - (countedAgoS + waitedS) * 1000 }]
    return kinds({ apps: [app], late, countedAgoS })
  }
  assert.deepEqual(since(50, 0.02), [], 'it was ready when it was counted, and has been sent since')
  assert.deepEqual(since(50, 31), ['mail_late'])
  assert.deepEqual(since(0, 31), ['mail_late'])
})

test('a silent process needs attention for an hour', () => {
  const silent = node({ alive: false, seenAt: ago(60), startedAt: ago(900) })
  assert.deepEqual(kinds({ nodes: [silent, node()] }), ['process_silent'])
  assert.deepEqual(kinds({ nodes: [{ ...silent, seenAt: ago(3700) }, node()] }), [])
})

test('a share of refused requests needs attention, a few do not', () => {
  assert.deepEqual(kinds({ refused: { queue_unavailable: 1 } }), [])
  assert.deepEqual(kinds({ refused: { queue_unavailable: 2 } }), ['requests_turned_away'])
  assert.deepEqual(kinds({ accepted: 0, refused: { url_not_allowed: 19 } }), [])
  assert.deepEqual(kinds({ accepted: 30, refused: { url_not_allowed: 25 } }), [])
  const [found] = attentionTo({ accepted: 10, refused: { url_not_allowed: 15, invalid_key: 5 } })
  assert.equal(found?.kind, 'requests_refused')
  assert.match(found.message, /^20 of 30 requests were refused .* most of them as url_not_allowed/)
})

test('mail that waits without a worker needs attention, an empty queue does not', () => {
  const api = node({ roles: ['api'], relays: [] })
  assert.deepEqual(kinds({ nodes: [api], depth: 3 }), ['no_worker'])
  assert.deepEqual(kinds({ nodes: [api] }), [])
  assert.deepEqual(kinds({ nodes: [], depth: 3 }), [], 'no process has described itself yet')
  assert.deepEqual(kinds({ nodes: [node({ alive: false, seenAt: ago(60) })], depth: 3 }), [
    'no_worker',
    'process_silent',
  ])
})
