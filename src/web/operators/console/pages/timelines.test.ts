/**
 * Every condition over time: before it begins, while it lasts and after it has ended, with its words, its
 * button in the console and what `queue` says. `attention.test.ts` has the bounds.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  acme,
  ago,
  type Counts,
  type Given,
  globex,
  newSituation,
  node,
  nowMs,
  relay,
} from '../../../../../test/support/attention.ts'
import { dayMs, hourMs } from '../../../../domain/duration.ts'
import type { KeyId } from '../../../../domain/id.ts'
import { findAttention } from '../../../../management/service/attention.ts'
import { findStops } from '../../../../management/service/attention-nodes.ts'
import { type AttentionKind, attentionKinds, isStop } from '../../../../management/service/condition.ts'
import { renderProblems } from './problems.ts'

/** A moment, and how the message begins then; null: the condition is not there. */
type Moment = readonly [given: Given, words: string | null]

const quiet: Moment = [{}, null]
const failing = (seconds: number, reason = 'ECONNREFUSED') => ({ ...relay('r1', false), since: ago(seconds), reason })
const only = (...relays: ReturnType<typeof relay>[]): Given => ({ nodes: [node({ relays })] })
const ofAcme = (counts: Counts, last: Counts = counts): Given => ({ byApp: { acme: counts }, last: { acme: last } })
const finding = (check: string, ok: boolean, detail: string): Given => ({ findings: [{ check, ok, detail }] })
const reported = (counts: Counts): Given => ({ reported: new Map([[acme.id, counts]]) })
const used = (accepted: number): Given => ({ usage: new Map([[acme.id, { accepted }]]) })
const lateFor = (seconds: number): Given => ({ late: [{ app: acme.id, since: nowMs - seconds * 1000 }] })
const heard = (days: number): Given => ({
  ...reported({ delivered: 600 }),
  sources: [{ source: 'mail', heardAt: nowMs - days * dayMs }],
})
const expiringIn = (ms: number): Given => {
  const key = { id: 'key_1' as KeyId, app: acme.id, name: 'web', createdAt: 0, createdBy: 'ann', replaces: null }
  const ends = {
    expiresAt: nowMs + ms,
    revokedAt: null,
    lastUsedAt: null,
    isTest: false,
    hook: null,
    networks: null,
    isReplaced: false,
  }
  return { expiring: [{ ...key, ...ends }] }
}
const certificate = (days: number): Given =>
  only({ ...relay('r1', true), certificateExpiresAt: new Date(nowMs + days * dayMs).toISOString() })
const held = (count: number, status: 'active' | 'disabled'): Given => ({
  ...{ apps: [acme, { ...globex, status }], depth: 0, held: count },
})

const timelines: Readonly<Record<AttentionKind, readonly Moment[]>> = {
  store_failing: [
    [finding('writes', true, 'the database takes a write'), null],
    [
      finding('writes', false, 'the disk is full'),
      'The database cannot be written (the disk is full), so requests are answered 503',
    ],
    quiet,
  ],
  no_worker: [
    [{ depth: 3 }, null],
    [
      { depth: 3, nodes: [node({ roles: ['api'] })] },
      'No process is sending mail: start one with the worker role. 3 emails are waiting',
    ],
    [{ depth: 5, nodes: [] }, 'No process of this service has reported lately: requests may not be answered'],
    [{ depth: 5, nodes: [node()] }, null],
  ],
  no_relay: [
    [only(relay('r1', true)), null],
    [
      { ...only(failing(20)), depth: 1 },
      'Nothing has been delivered since 23:59:40Z (20 s): the relay r1 cannot be used: the connection was refused (ECONNREFUSED). 1 email is waiting.',
    ],
    [
      { ...only(failing(120, '451 4.7.1 later')), depth: 9 },
      'Nothing has been delivered since 23:58:00Z (2 min): the relay r1 answers “451 4.7.1 later”. 9 emails are waiting.',
    ],
    [only(relay('r1', true)), null],
  ],
  relay_untried: [
    [only({ ...relay('r1', true), tried: false }), null],
    [
      { ...only({ ...relay('r1', true), tried: false }), depth: 2 },
      'Nothing has been sent since the start 60 min ago, so it is not known whether a relay answers. 2 emails are waiting',
    ],
    [{ ...only(relay('r1', true)), depth: 2 }, null],
  ],
  relay_down: [
    quiet,
    [
      only(failing(30), relay('r2', true)),
      'The relay r1 has failed since 23:59:30Z (30 s): the connection was refused (ECONNREFUSED). Mail goes through the others.',
    ],
    [
      only(failing(300, '535 5.7.8 no'), relay('r2', true)),
      'The relay r1 has answered “535 5.7.8 no” since 23:55:00Z (5 min)',
    ],
    quiet,
  ],
  mail_late: [
    [lateFor(30), null],
    [lateFor(31), 'Mail from acme has waited up to 31 s: it is accepted faster than it is sent, or a relay is slow.'],
    [
      { ...lateFor(90), ...only(relay('r1', true, { from: ago(120), until: ago(10), reason: '451 x' })), depth: 4 },
      'The relay answers again; Postern is sending the 4 emails that waited. The oldest has waited 90 s.',
    ],
    quiet,
  ],
  links_expired: [
    [{ byApp: { acme: { delivered: 1800 } }, expired: new Map([[acme.id, 2]]) }, null],
    [
      { byApp: { acme: { delivered: 50 } }, expired: new Map([[acme.id, 20]]) },
      '20 links from acme expired in the last 10 minutes, before the email could be sent.',
    ],
    quiet,
  ],
  mail_failed: [
    [ofAcme({ delivered: 200, 'failed:refused_by_relay': 2 }), null],
    [ofAcme({ 'failed:refused_by_relay': 5 }), '5 of 5 emails from acme failed in the last 3 minutes.'],
    [
      ofAcme({ delivered: 100, 'failed:refused_by_relay': 20 }, { delivered: 9, 'failed:refused_by_relay': 2 }),
      '20 of 120 emails from acme failed in the last 10 minutes.',
    ],
    [ofAcme({ delivered: 100, 'failed:refused_by_relay': 20 }, { delivered: 1 }), null],
  ],
  mail_deferred: [
    [ofAcme({ delivered: 200, deferred: 10 }), null],
    [
      ofAcme({ delivered: 90, deferred: 6 }, { deferred: 6 }),
      'The relay deferred 6 of 6 attempts to send mail from acme in the last 3 minutes.',
    ],
    [
      ofAcme({ delivered: 10, deferred: 30 }),
      'The relay deferred 30 of 40 attempts to send mail from acme in the last 10 minutes.',
    ],
    [ofAcme({ delivered: 10, deferred: 30 }, { delivered: 3 }), null],
  ],
  requests_refused: [
    [ofAcme({ accepted: 30, 'refused:url_not_allowed': 20 }), null],
    [
      ofAcme({ accepted: 10, 'refused:url_not_allowed': 21 }),
      '21 of 31 requests from acme were refused in the last 10 minutes: 21 url_not_allowed.',
    ],
    [ofAcme({ accepted: 10, 'refused:url_not_allowed': 21 }, { accepted: 5 }), null],
  ],
  requests_turned_away: [
    [{ counts: { accepted: 1000, 'refused:queue_unavailable': 10 } }, null],
    [
      { counts: { accepted: 97, 'refused:queue_unavailable': 3 } },
      '3 of 100 requests were answered 503 in the last 10 minutes',
    ],
    [{ counts: { accepted: 97, 'refused:queue_unavailable': 3 }, latest: { accepted: 9 } }, null],
  ],
  keys_missing: [
    [finding('keys', true, 'the key ring opens what waits for it'), null],
    [finding('keys', false, '3 emails wait for the key "k1".'), 'keys: 3 emails wait for the key "k1".'],
    quiet,
  ],
  record_missing: [
    quiet,
    [
      { records: [{ domain: 'acme.test', selector: 'p1', message: 'The record is missing.' }] },
      'Receivers cannot verify the mail from acme.test, which the key p1 signs, and may refuse it. The record is missing.',
    ],
    quiet,
  ],
  check_failed: [
    [finding('disk', true, '10 GiB free'), null],
    [finding('disk', false, '100 MiB free: make room'), 'disk: 100 MiB free: make room'],
    quiet,
  ],
  certificate_expires: [
    [certificate(31), null],
    [certificate(29), 'The certificate that the relay r1 needs for its tokens expires in 29 d'],
    [certificate(-1), 'The certificate that the relay r1 needs for its tokens has expired'],
    [certificate(365), null],
  ],
  process_silent: [
    quiet,
    [
      { nodes: [node(), node({ id: 'node_2', machine: 'mail-2', alive: false, seenAt: ago(40) })] },
      'The process on mail-2 (worker) has not reported for 40 s',
    ],
    [{ nodes: [node(), node({ id: 'node_2', machine: 'mail-2', alive: false, seenAt: ago(3601) })] }, null],
  ],
  log_lost: [
    quiet,
    [
      { nodes: [node({ faults: [{ what: 'log', since: ago(60), reason: 'ENOSPC' }] })] },
      'The process on mail-1 has not been able to write its log for 60 s: ENOSPC. Mail is not affected.',
    ],
    quiet,
  ],
  queue_nearly_full: [
    [{ depth: 799 }, null],
    [{ depth: 800 }, 'The queue holds 800 of at most 1,000 emails; when it is full, requests are refused with 503.'],
    [{ depth: 1000 }, 'The queue holds 1,000 of at most 1,000 emails'],
    [{ depth: 10 }, null],
  ],
  daily_limit_near: [
    [used(799), null],
    [used(800), 'acme has used 800 of its 1,000 emails for today (UTC).'],
    [used(1000), 'acme has used all of its 1,000 emails for today: until midnight (UTC) its requests are refused'],
    [used(0), null],
  ],
  mail_held: [
    [held(2, 'active'), null],
    [held(2, 'disabled'), 'globex is disabled and holds 2 emails; held mail is cancelled after 7 days.'],
    [held(0, 'disabled'), null],
  ],
  addresses_gone: [
    [{ counts: { gone: 19, delivered: 20 } }, null],
    [
      { counts: { gone: 25, delivered: 20 } },
      '25 of 25 emails in the last 10 minutes were for mailboxes that do not exist',
    ],
    quiet,
  ],
  complaints_many: [
    [reported({ delivered: 1000, complained: 2 }), null],
    [
      reported({ delivered: 1000, complained: 3 }),
      '3 of 1,000 delivered emails from acme were reported as spam in the last 7 days.',
    ],
    [reported({ delivered: 2000, complained: 3 }), null],
  ],
  bounces_many: [
    [reported({ delivered: 400, bounced: 19 }), null],
    [reported({ delivered: 400, bounced: 20 }), '20 of 400 delivered emails from acme bounced in the last 7 days.'],
    [reported({ delivered: 4000, bounced: 20 }), null],
  ],
  reports_silent: [
    [heard(6), null],
    [
      heard(8),
      'No report has come from the bounce listener for 8 d, though 600 emails were delivered in the last 7 days.',
    ],
    [heard(0), null],
  ],
  key_expires: [
    quiet,
    [expiringIn(3 * dayMs), 'The key web of acme expires in 3 d: replace it before then.'],
    [expiringIn(hourMs), 'The key web of acme expires in 60 min: replace it before then.'],
    quiet,
  ],
  auth_hook_refused: [
    quiet,
    [{ authHooks: [{ app: 'acme', message: 'Supabase gets 401.' }] }, 'Supabase gets 401.'],
    quiet,
  ],
  webhook_failing: [
    quiet,
    [
      { webhooks: [{ app: 'acme', message: 'The webhook receiver of acme answers 410.' }] },
      'The webhook receiver of acme answers 410.',
    ],
    quiet,
  ],
  setting_invalid: [
    quiet,
    [
      { apps: [{ ...acme, settings: { ...acme.settings, senderDomains: [] } }] },
      'acme.test is not a sender domain of acme, so its mail waits.',
    ],
    quiet,
  ],
}

for (const kind of attentionKinds) {
  test(`${kind}: it begins, lasts and ends in these words`, () => {
    const moments = timelines[kind]
    assert.ok(moments[0]?.[1] === null && moments.at(-1)?.[1] === null && moments.some(([, words]) => words !== null))
    for (const [given, words] of moments) {
      const situation = newSituation(given)
      const found = findAttention(situation).filter((condition) => condition.kind === kind)
      assert.equal(found.length, words === null ? 0 : 1, words ?? 'over')
      const [one] = found
      if (one === undefined || words === null) continue
      assert.equal(one.message.slice(0, words.length), words)
      const { text } = renderProblems([one], '')
      assert.match(text, /<a class="button" href="\//, 'a button opens its page')
      const stops = findStops(situation).map((stop) => stop.message)
      assert.equal(stops.includes(one.message), isStop(one), 'queue')
    }
  })
}

test('mail that an outage deferred is no second condition, also in the minutes after it', () => {
  const deferred = ofAcme({ deferred: 30 })
  const kinds = (given: Given) => findAttention(newSituation({ ...deferred, ...given })).map(({ kind }) => kind)
  assert.deepEqual(kinds({}), ['mail_deferred'])
  assert.deepEqual(kinds(only(failing(60))), ['no_relay'])
  const ended = (seconds: number) => only(relay('r1', true, { from: ago(600), until: ago(seconds), reason: '451 x' }))
  assert.deepEqual(kinds(ended(179)), [])
  assert.deepEqual(kinds(ended(180)), ['mail_deferred'])
  // Since then a few were deferred: the ten minutes still hold the attempts of the outage.
  const few = { last: { acme: { deferred: 2, delivered: 4 } } }
  assert.deepEqual([kinds({ ...ended(180), ...few }), kinds({ ...ended(599), ...few })], [[], []])
  assert.deepEqual(kinds(few), ['mail_deferred'])
})

test('a person with one app reads of it alone, and no name of a relay or process', () => {
  const given = { ...only(failing(20, '451 4.7.1 see globex.test')), depth: 1, seesAll: false }
  const [stop, ...others] = findAttention(newSituation(given))
  assert.equal(
    stop?.message,
    'Nothing has been delivered since 23:59:40Z (20 s): the relay answers 451 4.7.1. 1 email is waiting. Sending resumes by itself once a relay accepts mail.',
  )
  assert.deepEqual(others, [])
  for (const own of [
    'process_silent',
    'log_lost',
    'certificate_expires',
    'relay_down',
    'check_failed',
    'reports_silent',
  ] as const)
    for (const [moment] of timelines[own])
      assert.deepEqual(
        findAttention(newSituation({ ...moment, seesAll: false })).map(({ kind }) => kind),
        [],
        own,
      )
})
