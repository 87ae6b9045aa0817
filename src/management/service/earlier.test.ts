import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ago, countOf, node, nowMs, relay } from '../../../test/support/attention.ts'
import { minuteMs } from '../../domain/duration.ts'
import { findEarlier } from './earlier.ts'
import { listOutages, outageEnd, withoutRelay } from './outages.ts'

test('what is over has its time: an outage, the links that it cost, mail that failed', () => {
  const minute = nowMs / minuteMs
  const outage = { from: ago(3600), until: ago(3000), reason: 'ECONNREFUSED' }
  const nodes = [node({ relays: [relay('r1', true, outage)] })]
  assert.equal(outageEnd(listOutages(nodes, [])), Date.parse(outage.until))
  const earlier = findEarlier({
    nowMs,
    outages: listOutages(nodes, []),
    minutes: [
      { minute: minute - 80, event: 'expired', count: 7 },
      { minute: minute - 58, event: 'expired', count: 2 },
      { minute: minute - 51, event: 'expired', count: 3 },
    ],
    expired: ['acme', 'globex'],
    conditions: [
      {
        kind: 'mail_failed',
        slugs: ['hooli'],
        reply: '554 spam',
        counts: countOf({ 'failed:refused_by_relay': 30, delivered: 10 }),
        from: (minute - 100) * minuteMs,
        until: (minute - 99) * minuteMs,
      },
    ],
  })
  assert.deepEqual(
    earlier.map(({ apps, kind, message, from, until }) => [kind, message, apps, from, until]),
    [
      [
        'relay_down',
        'The relay r1 did not answer for 10 min: the connection was refused (ECONNREFUSED). 5 links expired meanwhile.',
        [],
        Date.parse(outage.from),
        Date.parse(outage.until),
      ],
      [
        'links_expired',
        '7 links expired before the email could be sent.',
        [],
        (minute - 80) * minuteMs,
        (minute - 79) * minuteMs,
      ],
      [
        'mail_failed',
        '30 emails from hooli failed; most frequent reply: “554 spam”.',
        ['hooli'],
        (minute - 100) * minuteMs,
        (minute - 99) * minuteMs,
      ],
    ],
  )
  const nothing = { nowMs, outages: [], minutes: [], expired: [], conditions: [] }
  assert.deepEqual(findEarlier(nothing), [])
  assert.deepEqual(
    findEarlier({ ...nothing, outages: listOutages(nodes, []) }).map(({ message }) => message),
    ['The relay r1 did not answer for 10 min: the connection was refused (ECONNREFUSED). No link expired meanwhile.'],
  )
})

test('an outage of hours ago is left out, and links that expired after one are not put down to it', () => {
  const minute = nowMs / minuteMs
  const outage = (fromS: number, untilS: number) =>
    listOutages(
      [node({ relays: [relay('r1', true, { from: ago(fromS), until: ago(untilS), reason: 'ECONNREFUSED' })] })],
      [],
    )
  const past = { nowMs, minutes: [], expired: [], conditions: [] }
  assert.deepEqual(findEarlier({ ...past, outages: outage(11_400, 10_800) }), [])
  const minutes = [
    { minute: minute - 15, event: 'expired', count: 1 },
    { minute: minute - 5, event: 'expired', count: 2 },
  ] as const
  const found = findEarlier({ ...past, outages: outage(1200, 600), minutes, expired: ['acme'] })
  assert.deepEqual(
    found.map(({ kind, message }) => [kind, /\d+ links?/.exec(message)?.[0]]),
    [
      ['links_expired', '2 links'],
      ['relay_down', '1 link'],
    ],
    'the newest first',
  )
})

test('outages that were kept are listed beside those that processes say, and what several saw is one', () => {
  const at = (seconds: number) => nowMs - seconds * 1000
  const seen = { from: ago(600), until: ago(480), reason: 'ECONNREFUSED' }
  const nodes = [node({ relays: [relay('r1', true, seen)] })]
  const kept = [
    { relay: 'r1', from: at(3000), until: at(2900), reason: '451 4.7.1 later' },
    { relay: 'r1', from: at(601), until: at(479), reason: 'ETIMEDOUT' },
    { relay: 'r2', from: at(590), until: at(500), reason: 'ECONNREFUSED' },
  ]
  assert.deepEqual(
    listOutages(nodes, kept).map(({ from, reason, relay: name, until }) => [name, from, until, reason]),
    [
      ['r1', at(3000), at(2900), '451 4.7.1 later'],
      ['r1', at(601), at(479), 'ETIMEDOUT'],
      ['r2', at(590), at(500), 'ECONNREFUSED'],
    ],
  )
})

test('links that expired in a minute of two outages count once', () => {
  const minute = nowMs / minuteMs - 30
  const begin = minute * minuteMs
  const outage = (from: number, until: number) => ({
    relay: 'r1',
    from: begin + from,
    until: begin + until,
    reason: '',
  })
  const found = findEarlier({
    ...{ nowMs, expired: [], conditions: [] },
    outages: [outage(0, 10_000), outage(30_000, 40_000)],
    minutes: [{ minute, event: 'expired', count: 3 }],
  })
  assert.deepEqual(
    found.map(({ message }) => /(No link|\d links) expired/.exec(message)?.[1]),
    ['No link', '3 links'],
  )
})

test('an access for some apps reads of an outage without the relay and its words', () => {
  const at = (seconds: number) => nowMs - seconds * 1000
  const outages = [
    { relay: 'mail.acme.test:587', from: at(900), until: at(600), reason: '451 4.7.1 mail of globex is late' },
    { relay: 'mail.acme.test:587', from: at(300), until: at(240), reason: 'connect ECONNREFUSED 10.0.0.7:587' },
  ]
  const past = { nowMs, minutes: [], expired: [], conditions: [] }
  assert.deepEqual(
    findEarlier({ ...past, outages: outages.map(withoutRelay) }).map(({ message }) => message),
    [
      'A relay did not answer for 60 s. No link expired meanwhile.',
      'A relay refused mail for 5 min: 451 4.7.1. No link expired meanwhile.',
    ],
  )
})
