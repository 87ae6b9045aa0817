import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acme, type Given, globex, newSituation, node, nowMs, relay } from '../../../test/support/attention.ts'
import { findAttention } from './attention.ts'

const attentionTo = (situation: Given) => findAttention(newSituation(situation))

test('a transport that is down concerns its apps alone, and the relays of the service as well if they are', () => {
  const [served, ofService] = [{ ...acme, settings: { ...acme.settings, transport: 'own' } }, globex]
  const apps = [served, ofService]
  const down = node({ relays: [relay('r1', true), relay('own/a:587', false)] })
  const [one, ...others] = attentionTo({ apps, nodes: [down] })
  assert.deepEqual([one?.kind, one?.urgent, one?.apps, others], ['relay_down', true, ['acme'], []])
  assert.match(one?.message ?? '', /^The relay own\/a:587 has failed .*\. The mail of acme waits\.$/)
  const spare = node({ relays: [relay('r1', true), relay('own/a:587', false), relay('own/b:587', true)] })
  const [spared] = attentionTo({ apps, nodes: [spare] })
  assert.deepEqual([spared?.urgent, /goes through the others\.$/.test(spared?.message ?? '')], [false, true])
  const all = node({ relays: [relay('r1', false), relay('own/a:587', true)] })
  assert.match(attentionTo({ apps, nodes: [all] })[0]?.message ?? '', /^No mail of apps without a transport has been/)
  const theirs = attentionTo({ apps: [served], nodes: [down], seesAll: false })
  assert.deepEqual(
    theirs.map(({ apps, message }) => [apps, message]),
    [[['acme'], 'The mail of acme waits: no relay can be used.']],
  )
  assert.deepEqual(attentionTo({ apps: [ofService], nodes: [down], seesAll: false }), [])
})

test('late mail of a transport that no process has, or that is down, is not called slow', () => {
  const served = { ...acme, settings: { ...acme.settings, transport: 'own' } }
  const given = { apps: [served], late: [{ app: acme.id, since: nowMs - 60_000 }], depth: 3 }
  const [missing] = attentionTo({ ...given, nodes: [node({ relays: [relay('r1', true)] })] })
  assert.match(missing?.message ?? '', /^The mail of acme waits, because no process can use the transport own/)
  assert.deepEqual([missing?.kind, missing?.urgent], ['mail_late', true])
  const down = node({ relays: [relay('r1', true), relay('own/a:587', false)] })
  assert.deepEqual(
    attentionTo({ ...given, nodes: [down] }).map(({ kind }) => kind),
    ['relay_down'],
  )
  const slow = node({ relays: [relay('r1', true), relay('own/a:587', true)] })
  assert.match(attentionTo({ ...given, nodes: [slow] })[0]?.message ?? '', /^Mail from acme has waited up to 60 s/)
})
