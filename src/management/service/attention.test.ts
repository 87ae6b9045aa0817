import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  acme,
  ago,
  type Counts,
  type Given,
  globex,
  hooli,
  newApp,
  newSituation,
  node,
  nowMs,
  relay,
} from '../../../test/support/attention.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import type { AppId, KeyId } from '../../domain/id.ts'
import type { HeardSource } from '../../store/report-store.ts'
import type { NodeResource } from '../resources.ts'
import { appConditions } from './app-conditions.ts'
import { findAttention } from './attention.ts'
import { findStops } from './attention-nodes.ts'

const attentionTo = (situation: Given) => findAttention(newSituation(situation))
const kinds = (situation: Given) => attentionTo(situation).map(({ kind }) => kind)

test('processes and relays that are well need nothing', () => {
  assert.deepEqual(kinds({}), [])
})

test('one relay of two warns, and says how mail goes', () => {
  const given = { nodes: [node({ relays: [relay('r1', false), relay('r2', true)] })] }
  const [one] = attentionTo(given)
  assert.deepEqual(findStops(newSituation(given)), [])
  assert.deepEqual([one?.kind, one?.urgent], ['relay_down', false])
  assert.match(
    one?.message ?? '',
    /^The relay r1 has failed since 23:48:00Z \(12 min\): the connection was refused \(ECONNREFUSED\)\. Mail goes through the others\.$/,
  )
})

test('a relay that answers, and refuses all mail, is not called silent', () => {
  const refusing = { ...relay('r1', false), reason: '535 5.7.8 no such user' }
  const [both] = attentionTo({ nodes: [node({ relays: [refusing] })] })
  assert.match(
    both?.message ?? '',
    /^Nothing has been delivered since 23:48:00Z \(12 min\): the relay r1 answers “535 5\.7\.8 no such user” \(user or pass/,
  )
  assert.match(both?.message ?? '', /once a relay accepts mail\.$/)
  const [one] = attentionTo({ nodes: [node({ relays: [refusing, relay('r2', true)] })] })
  assert.match(one?.message ?? '', /^The relay r1 has answered “535 5\.7\.8 no such user” since 23:48:00Z \(12 min\)/)
  const [mixed] = attentionTo({ nodes: [node({ relays: [refusing, relay('r2', false)] })] })
  assert.match(
    mixed?.message ?? '',
    /r1 answers “535 .*; the relay r2 cannot be used: the connection was refused \(ECONN/,
  )
})

test('without a relay there is one condition, which counts what waits and what is lost', () => {
  const given = {
    nodes: [node({ relays: [relay('r1', false), relay('r2', false)] })],
    depth: 149,
    firstExpiresAt: new Date(nowMs + 4 * minuteMs).toISOString(),
    late: [{ app: acme.id, since: nowMs - 60_000 }],
    expired: new Map([[acme.id, 12]]),
    apps: [acme, globex],
  }
  const found = attentionTo(given)
  assert.deepEqual(findStops(newSituation(given)), found)
  assert.deepEqual(
    found.map(({ kind, urgent }) => [kind, urgent]),
    [['no_relay', true]],
  )
  assert.match(
    found[0]?.message ?? '',
    /r1 cannot be used: the connection was refused \(ECONNREFUSED\); the relay r2 .*149 emails from acme are waiting; the first link expires in 4 min\. 12 links have expired since 23:50Z\. Sending resumes by itself/,
  )
})

test('after a start nothing is fine until an attempt has shown that a relay answers', () => {
  const untried = (name: string) => ({ ...relay(name, true), tried: false })
  const nodes = [node({ startedAt: ago(40), relays: [untried('r1'), untried('r2')] })]
  const [found, ...more] = attentionTo({ nodes, depth: 3, nextAttemptAt: ago(-55) })
  assert.deepEqual([found?.kind, found?.urgent, more], ['relay_untried', false, []])
  assert.match(
    found?.message ?? '',
    /^Nothing has been sent since the start 40 s ago, .*3 emails are waiting\. The next attempt is in 55 s\.$/,
  )
  assert.deepEqual(kinds({ nodes }), [], 'nothing waits')
  assert.deepEqual(kinds({ nodes, depth: 3, held: 3 }), [], 'what waits is held')
  const other = node({ id: 'node_2', relays: [relay('r1', true), untried('r2')] })
  assert.deepEqual(kinds({ nodes: [...nodes, other], depth: 3 }), [], 'another process has sent')
  const down = node({ relays: [relay('r1', false), untried('r2')] })
  assert.deepEqual(kinds({ nodes: [down], depth: 3 }), ['relay_down'])
})

test('held mail does not wait for a relay', () => {
  const nodes = [node({ relays: [relay('r1', false)] })]
  const [found] = attentionTo({ nodes, depth: 10, held: 4, apps: [acme, globex] })
  assert.match(found?.message ?? '', / 6 emails from acme are waiting\./)
  assert.match(findStops(newSituation({ nodes, depth: 4, held: 4 }))[0]?.message ?? '', /No mail is waiting yet\./)
})

test('a certificate that gets a relay’s tokens needs attention from 30 days before it expires, once', () => {
  const expiring = (days: number): NodeResource =>
    node({
      relays: [
        { ...relay('r1', true), certificateExpiresAt: new Date(nowMs + days * dayMs).toISOString() },
        relay('r2', true),
      ],
    })
  assert.deepEqual(kinds({ nodes: [expiring(30), expiring(31)] }), [])
  assert.deepEqual(kinds({ nodes: [expiring(29)], seesAll: false }), [])
  const [found, ...more] = attentionTo({ nodes: [expiring(12), expiring(29)] })
  assert.deepEqual([found?.kind, found?.urgent, more], ['certificate_expires', false, []])
  assert.match(
    found?.message ?? '',
    /^The certificate that the relay r1 needs for its tokens expires in 12 d: upload a new one/,
  )
  assert.match(attentionTo({ nodes: [expiring(-1)] })[0]?.message ?? '', /r1 needs for its tokens has expired: upload/)
})

test('nothing is delivered since the last process lost its relay', () => {
  const first = { ...relay('r1', false), since: ago(3600) }
  const nodes = [node({ relays: [first] }), node({ id: 'node_2', machine: 'mail-2', relays: [relay('r1', false)] })]
  assert.match(attentionTo({ nodes })[0]?.message ?? '', /^Nothing has been delivered since 23:48:00Z \(12 min\)/)
})

test('an access for some apps learns that nothing is sent, and no name of a relay or a machine', () => {
  const down = node({ relays: [relay('r1', false)] })
  const [found, ...more] = attentionTo({ seesAll: false, nodes: [down], depth: 3 })
  assert.deepEqual(found?.kind, 'no_relay')
  assert.doesNotMatch(found?.message ?? '', /r1|ECONNREFUSED|mail-1/)
  assert.match(found?.message ?? '', /3 emails are waiting/)
  assert.deepEqual(more, [])
  const partly = node({ relays: [relay('r1', false), relay('r2', true)] })
  const silent = node({ id: 'node_2', alive: false, seenAt: ago(60) })
  assert.deepEqual(kinds({ seesAll: false, nodes: [partly, silent] }), [])
})

test('requests of a disabled app are refused on purpose', () => {
  const byApp = { acme: { 'refused:invalid_key': 300 } }
  assert.deepEqual(kinds({ byApp }), ['requests_refused'])
  assert.deepEqual(kinds({ byApp, apps: [{ ...acme, status: 'disabled' }] }), [])
})

test('a relay that one process alone cannot reach is not down: others send', () => {
  const other = node({ machine: 'mail-2', relays: [relay('r1', false)] })
  const [found, ...more] = attentionTo({ nodes: [node({ relays: [relay('r1', true)] }), other] })
  assert.match(
    found?.message ?? '',
    /^The relay r1 \(seen from mail-2\) has failed .*Other processes can reach it, and are sending\.$/,
  )
  assert.deepEqual(more, [])
})

test('mail is late by the moment of its count, however long the count is kept', () => {
  const since = (countedAgoS: number, waitedS: number) => {
    const late = [{ app: acme.id, since: nowMs - (countedAgoS + waitedS) * 1000 }]
    return kinds({ late, countedAgoS })
  }
  assert.deepEqual(since(50, 0.02), [], 'it was ready when it was counted, and has been sent since')
  assert.deepEqual(since(50, 31), ['mail_late'])
  assert.deepEqual(since(0, 31), ['mail_late'])
})

test('late mail of several apps is one condition', () => {
  const apps = [acme, globex, hooli, newApp('umbrella')]
  const late = apps.map(({ id }, n) => ({ app: id, since: nowMs - 40_000 - n * 60_000 }))
  const [found, ...more] = attentionTo({ apps, late })
  assert.match(found?.message ?? '', /^Mail from acme, globex, hooli and 1 more has waited up to 4 min/)
  assert.deepEqual([found?.apps, more], [['acme', 'globex', 'hooli', 'umbrella'], []])
})

test('a silent process needs attention for an hour', () => {
  const silent = node({ alive: false, seenAt: ago(60), startedAt: ago(900) })
  assert.deepEqual(kinds({ nodes: [silent, node()] }), ['process_silent'])
  assert.deepEqual(kinds({ nodes: [{ ...silent, seenAt: ago(3700) }, node()] }), [])
})

test('a share of refused requests needs attention, a few do not', () => {
  const service = (counts: Counts) => kinds({ counts })
  assert.deepEqual(service({ accepted: 100, 'refused:queue_unavailable': 1 }), [])
  assert.deepEqual(service({ accepted: 100, 'refused:queue_unavailable': 2 }), ['requests_turned_away'])
  const over = { counts: { accepted: 100, 'refused:queue_unavailable': 50 }, latest: { accepted: 30 } }
  assert.deepEqual(kinds(over), [], 'the database has answered for minutes')
  assert.deepEqual(service({ 'refused:url_not_allowed': 19 }), [])
  assert.deepEqual(service({ accepted: 30, 'refused:url_not_allowed': 25 }), [])
  const [found] = attentionTo({
    counts: { accepted: 10, 'refused:url_not_allowed': 5, 'refused:invalid_key': 15 },
  })
  assert.match(found?.message ?? '', /^20 of 30 requests were refused .*: 15 invalid_key, 5 url_not_allowed\.$/)
  const counts = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((code, n) => [`refused:${code}`, 9 - n]))
  assert.match(attentionTo({ counts })[0]?.message ?? '', /: 9 a, 8 b, 7 c, 11 others\.$/)
})

test('the refusals of an app are its own, also beside many requests of others', () => {
  const found = attentionTo({
    apps: [acme, globex],
    byApp: { acme: { accepted: 5000 }, globex: { accepted: 87, 'refused:recipient_rate_limited': 303 } },
  })
  assert.deepEqual(
    found.map(({ apps, kind }) => [kind, apps]),
    [['requests_refused', ['globex']]],
  )
  assert.match(found[0]?.message ?? '', /^303 of 390 requests from globex .*: 303 recipient_rate_limited/)
})

test('a flood of requests over a limit needs attention, however much else is accepted', () => {
  const of = (count: number, code: string) =>
    attentionTo({ byApp: { acme: { accepted: 5000, [`refused:${code}`]: count } } }).map(({ kind }) => kind)
  assert.deepEqual(of(20, 'recipient_rate_limited'), ['requests_refused'])
  assert.deepEqual(of(20, 'key_rate_limited'), ['requests_refused'])
  assert.deepEqual(of(19, 'recipient_rate_limited'), [])
  assert.deepEqual(of(20, 'url_not_allowed'), [])
})

test('mail that a relay defers needs attention by its share of the attempts, and says the reply', () => {
  const replies = {
    mail_deferred: new Map([[acme.id, { text: '451 4.7.1 later', emails: 20, isOfRecipients: false }]]),
  }
  const of = (counts: Counts, last: Counts = { delivered: 1, deferred: 1 }) =>
    attentionTo({ byApp: { acme: counts }, last: { acme: last }, replies }).map(({ kind, urgent }) => [kind, urgent])
  assert.deepEqual(of({ deferred: 19 }), [])
  assert.deepEqual(of({ deferred: 20 }), [['mail_deferred', true]])
  assert.deepEqual(of({ deferred: 20, delivered: 20 }), [])
  assert.deepEqual(of({ deferred: 21, delivered: 20 }), [['mail_deferred', false]])
  assert.equal(
    attentionTo({ byApp: { acme: { deferred: 200, delivered: 1 } }, replies })[0]?.message,
    'The relay deferred 200 of 201 attempts to send mail from acme in the last 10 minutes; most frequent reply: “451 4.7.1 later”.',
  )
})

test('mail of an app that is all deferred or failed shows within minutes, however much went well before', () => {
  const of = (last: Counts, event: string, replies: Given['replies'] = {}) =>
    attentionTo({ byApp: { acme: { delivered: 900, [event]: 9 } }, last: { acme: last }, replies })
  const [deferred, ...more] = of({ deferred: 5 }, 'deferred')
  assert.deepEqual([deferred?.kind, deferred?.urgent, more], ['mail_deferred', true, []])
  assert.equal(deferred?.message, 'The relay deferred 5 of 5 attempts to send mail from acme in the last 3 minutes.')
  assert.deepEqual(of({ deferred: 4 }, 'deferred'), [])
  assert.deepEqual(of({ deferred: 50, delivered: 1 }, 'deferred'), [])
  assert.equal(of({ deferred: 50, 'failed:refused_by_relay': 1 }, 'deferred')[0]?.kind, 'mail_deferred')
  const [failed] = of({ 'failed:refused_by_relay': 5, deferred: 2 }, 'failed:refused_by_relay')
  assert.deepEqual([failed?.kind, failed?.urgent], ['mail_failed', true])
  assert.match(failed?.message ?? '', /^5 of 5 emails from acme failed in the last 3 minutes/)
})

test('a few mailboxes that are full, greylist or do not exist are nothing to act on; many are', () => {
  const of = (kind: 'mail_deferred' | 'mail_failed', counts: Counts, emails: number, isOfRecipients: boolean) => {
    const usual = { text: '452 4.2.2 over quota', emails, isOfRecipients }
    return kinds({ byApp: { acme: counts }, replies: { [kind]: new Map([[acme.id, usual]]) } })
  }
  const [deferred, failed] = [{ deferred: 60 }, { 'failed:refused_by_relay': 8 }]
  assert.deepEqual(of('mail_deferred', deferred, 9, true), [])
  assert.deepEqual(of('mail_failed', failed, 8, true), [])
  assert.deepEqual(of('mail_failed', failed, 10, true), ['mail_failed'])
  assert.deepEqual(of('mail_deferred', deferred, 10, true), ['mail_deferred'])
  assert.deepEqual(of('mail_deferred', deferred, 9, false), ['mail_deferred'], 'others among them')
  assert.deepEqual(of('mail_deferred', { deferred: 6 }, 1, false), [], 'attempts at one email')
})

test('a condition of an app is over after minutes without it: mail that goes again, no refused request', () => {
  const of = (event: string, last: Counts | null) =>
    kinds({
      byApp: { acme: { delivered: 5, [event]: 50 } },
      last: last === null ? {} : { acme: last },
    })
  for (const [event, kind] of [
    ['failed:refused_by_relay', 'mail_failed'],
    ['deferred', 'mail_deferred'],
  ] as const) {
    assert.deepEqual(of(event, null), [kind], 'nothing was sent since')
    assert.deepEqual(of(event, { accepted: 3 }), [kind])
    assert.deepEqual(of(event, { delivered: 1, [event]: 1 }), [kind])
    assert.deepEqual(of(event, { delivered: 1 }), [])
  }
  assert.deepEqual(of('refused:invalid_url', { 'refused:invalid_url': 1 }), ['requests_refused'])
  assert.deepEqual(of('refused:invalid_url', { accepted: 1 }), [])
  assert.deepEqual(of('refused:invalid_url', null), [])
})

test('after an outage, mail that waits is what the outage left', () => {
  const late = [{ app: acme.id, since: nowMs - 90_000 }]
  const of = (endedS: number) => {
    const outage = { from: ago(endedS + 120), until: ago(endedS), reason: 'ECONNREFUSED' }
    const nodes = [node({ relays: [relay('r1', true, outage)] })]
    return attentionTo({ late, nodes, depth: 559 }).map(({ message, urgent }) => [message, urgent])
  }
  assert.deepEqual(of(20), [
    ['The relay answers again; Postern is sending the 559 emails that waited. The oldest has waited 90 s.', false],
  ])
  assert.match(String(of(301)[0]), /accepted faster than it is sent.*true$/)
  assert.match(String(of(70)[0]), /false$/)
  assert.match(String(of(100)[0]), /true$/, 'it was due only after the outage')
})

test('a key that was replaced and is still in use says so', () => {
  const key = {
    ...{
      id: 'key_1' as KeyId,
      app: acme.id,
      name: 'web',
      isTest: false,
      createdAt: 0,
      createdBy: 'ann',
      replaces: null,
      networks: null,
    },
    ...{ hook: null, expiresAt: nowMs + 119 * minuteMs, revokedAt: null, lastUsedAt: nowMs - 180_000 },
  }
  const of = (isReplaced: boolean, expiresAt = key.expiresAt) =>
    attentionTo({ expiring: [{ ...key, expiresAt, isReplaced }] })[0]?.message
  assert.match(of(true) ?? '', /^The old key web of acme was replaced, but was still used 3 min ago\. .* in 119 min/)
  assert.equal(of(true, nowMs + 120 * minuteMs), undefined, 'within its grace')
  assert.match(of(false, nowMs + 23 * 60 * minuteMs) ?? '', /^The key web of acme expires in 23 h: replace it/)
  const unnamed = attentionTo({ expiring: [{ ...key, name: null, isReplaced: false }] })[0]
  assert.match(unnamed?.message ?? '', /^The key key_1 of acme expires/)
})

test('failed mail needs attention by its share of the last minutes, or if nothing else is sent', () => {
  const of = (counts: Counts) => kinds({ byApp: { acme: counts } })
  assert.deepEqual(of({ delivered: 1000, 'failed:refused_by_relay': 40 }), [])
  assert.deepEqual(of({ delivered: 100, 'failed:refused_by_relay': 9 }), [])
  assert.deepEqual(of({ delivered: 100, 'failed:refused_by_relay': 10 }), ['mail_failed'])
  assert.deepEqual(of({ delivered: 190, 'failed:refused_by_relay': 10 }), [], 'exactly 5 %')
  assert.deepEqual(of({ delivered: 189, 'failed:refused_by_relay': 10 }), ['mail_failed'])
  assert.deepEqual(of({ 'failed:refused_by_relay': 2 }), [])
  assert.deepEqual(of({ 'failed:refused_by_relay': 3 }), ['mail_failed'])
  assert.deepEqual(of({ delivered: 3, 'failed:refused_by_relay': 6 }), ['mail_failed'])
  assert.deepEqual(of({ delivered: 3, 'failed:refused_by_relay': 3 }), ['mail_failed'], 'half of them')
  assert.deepEqual(of({ delivered: 4, 'failed:refused_by_relay': 3 }), [])
})

test('apps whose mail fails with one reply are one condition, which says the reply', () => {
  const failing = { delivered: 6, 'failed:refused_by_relay': 54 } as const
  const found = attentionTo({
    apps: [acme, globex, hooli],
    byApp: { acme: failing, globex: failing, hooli: failing },
    replies: {
      mail_failed: new Map([
        [acme.id, { text: '550 5.7.1 domain not verified', emails: 20, isOfRecipients: false }],
        [globex.id, { text: '550 5.7.1 domain not verified', emails: 20, isOfRecipients: false }],
        [hooli.id, { text: '554 spam', emails: 20, isOfRecipients: false }],
      ]),
    },
  })
  assert.deepEqual(
    found.map(({ apps, urgent }) => [apps, urgent]),
    [
      [['acme', 'globex'], true],
      [['hooli'], true],
    ],
  )
  assert.match(
    found[0]?.message ?? '',
    /^108 of 120 emails from acme, globex failed .*“550 5\.7\.1 domain not verified” \(verify the sender’s domain at the provider\)\.$/,
  )
})

test('a link that expired is no alarm, several are', () => {
  const of = (count: number, delivered: number) =>
    attentionTo({ byApp: { acme: { delivered } }, expired: new Map([[acme.id, count]]) }).map(({ kind, urgent }) => [
      kind,
      urgent,
    ])
  assert.deepEqual(of(1, 0), [['links_expired', false]])
  assert.deepEqual(of(4, 0), [['links_expired', false]])
  assert.deepEqual(of(5, 0), [['links_expired', true]])
  assert.deepEqual(of(5, 95), [], 'exactly 5 %')
  assert.deepEqual(of(5, 94), [['links_expired', true]])
  assert.deepEqual(of(40, 2960), [], 'slow mailboxes')
  const beside = { apps: [acme, globex], byApp: { acme: {}, globex: { delivered: 1000 } } }
  const [own] = attentionTo({ ...beside, expired: new Map([[acme.id, 10]]) })
  assert.deepEqual([own?.kind, own?.apps], ['links_expired', ['acme']], 'other apps do not hide it')
})

const reportedOf = (byApp: Readonly<Record<string, Counts>>) =>
  new Map(Object.entries(byApp).map(([slug, counts]) => [`app_${slug}` as AppId, counts]))

test('bounces need attention from 20 and 5 % of what an app delivered, complaints from 3 and 0.3 %', () => {
  const of = (counts: Counts) => kinds({ reported: reportedOf({ acme: counts }) })
  assert.deepEqual(of({ delivered: 380, bounced: 19 }), [])
  assert.deepEqual(of({ delivered: 400, bounced: 20 }), ['bounces_many'])
  assert.deepEqual(of({ delivered: 401, bounced: 20 }), [])
  assert.deepEqual(of({ delivered: 600, complained: 2 }), [])
  assert.deepEqual(of({ delivered: 1000, complained: 3 }), ['complaints_many'])
  assert.deepEqual(of({ delivered: 1001, complained: 3 }), [])
})

test('bounces are those of one app, and no outage: nothing else is less urgent but keys and settings', () => {
  const reported = reportedOf({
    acme: { delivered: 5000, bounced: 30 },
    globex: { delivered: 410, bounced: 34, complained: 4 },
  })
  const byApp = { acme: { 'refused:invalid_url': 25 } }
  const found = attentionTo({ apps: [acme, globex], reported, byApp })
  assert.deepEqual(
    found.map(({ apps, kind, urgent }) => [kind, apps, urgent]),
    [
      ['requests_refused', ['acme'], false],
      ['complaints_many', ['globex'], false],
      ['bounces_many', ['globex'], false],
    ],
  )
  assert.match(found[1]?.message ?? '', /^4 of 410 delivered emails from globex were reported as spam in the/)
  assert.match(found[2]?.message ?? '', /^34 of 410 delivered emails from globex bounced in the last 7 days\./)
  const acted = [acme, { ...globex, status: 'disabled' } as const]
  assert.deepEqual(kinds({ apps: acted, reported }), [], 'somebody has disabled it')
  const late = attentionTo({ reported: reportedOf({ acme: { bounced: 20 } }) })
  assert.match(late[0]?.message ?? '', /^20 of 20 delivered/, 'its reports are of emails of the days before')
})

test('many missing mailboxes need attention from 20 and 30 % of what ended; others than the whole service see none', () => {
  const of = (counts: Counts, seesAll = true) => kinds({ counts, seesAll })
  assert.deepEqual(of({ gone: 19, delivered: 19 }), [])
  assert.deepEqual(of({ gone: 20, delivered: 66 }), ['addresses_gone'])
  assert.deepEqual(of({ gone: 20, delivered: 67 }), [])
  assert.deepEqual(of({ gone: 20, delivered: 66 }, false), [])
  const [found] = attentionTo({ counts: { gone: 25, delivered: 20 } })
  assert.match(found?.message ?? '', /^25 of 25 emails in the last 10 minutes were for mailboxes/)
})

test('a source of reports that was heard before needs attention after 7 days and 500 delivered emails', () => {
  const of = (days: number, delivered: number, source: HeardSource['source'] = 'resend', seesAll = true) =>
    attentionTo({
      sources: [
        { source: 'mail', heardAt: nowMs },
        { source, heardAt: nowMs - days * dayMs },
      ],
      reported: reportedOf({ acme: { delivered } }),
      seesAll,
    }).map(({ kind }) => kind)
  assert.deepEqual(of(7.01, 500), ['reports_silent'])
  assert.deepEqual(of(7, 500), [])
  assert.deepEqual(of(7.01, 499), [])
  assert.deepEqual(of(30, 500), [], 'it was given up')
  assert.deepEqual(of(8, 500, 'read'), [])
  assert.deepEqual(of(8, 500, 'resend', false), [])
  const silent = (['mail', 'resend'] as const).map((source) => ({ source, heardAt: nowMs - 8 * dayMs }))
  const [found] = attentionTo({ sources: silent, reported: reportedOf({ acme: { delivered: 1200 } }) })
  assert.match(
    found?.message ?? '',
    /^No report has come from the bounce listener for 8 d, and from the webhooks of resend for 8 d, though 1,200 emails/,
  )
})

test('the daily limit warns at 80 %, and is urgent when it is used up', () => {
  const of = (accepted: number) =>
    attentionTo({ usage: new Map([[acme.id, { accepted }]]) }).map(({ kind, urgent }) => [kind, urgent])
  assert.deepEqual(of(799), [])
  assert.deepEqual(of(800), [['daily_limit_near', false]])
  assert.deepEqual(of(1000), [['daily_limit_near', true]])
})

test('the mail that a disabled app holds needs attention, the mail of others does not', () => {
  const held = attentionTo({ apps: [{ ...acme, status: 'disabled' }, globex], depth: 3 })
  assert.deepEqual(
    held.map(({ apps, kind }) => [kind, apps]),
    [['mail_held', ['acme']]],
  )
  assert.match(held[0]?.message ?? '', /^acme is disabled and holds 3 emails;/)
  assert.deepEqual(kinds({ apps: [acme, { ...globex, status: 'disabled' }], depth: 3 }), [])
})

test('requests that the service could not take are no fault of their app, now and later', () => {
  const events = ['refused:url_not_allowed', 'refused:queue_full', 'accepted'] as const
  const counted = events.map((event) => appConditions.requests_refused.countsEvent(event))
  assert.deepEqual(counted, [true, false, false])
})

test('a record that is missing concerns the apps of its domain', () => {
  const records = [{ domain: 'acme.test', selector: 'p1', message: 'Publish it.' }]
  const [found, ...more] = attentionTo({ records, apps: [acme, globex] })
  assert.deepEqual([found?.kind, found?.urgent, found?.apps], ['record_missing', true, ['acme', 'globex']])
  assert.match(found?.message ?? '', /^Receivers cannot verify the mail from acme\.test.* p1 .* Publish it\.$/)
  assert.deepEqual(more, [])
  assert.deepEqual(kinds({ records: [{ domain: 'other.test', selector: 'p1', message: '' }] }), [])
})

test('mail that waits without a worker needs attention, an empty queue does not', () => {
  const api = node({ roles: ['api'], relays: [] })
  assert.deepEqual(kinds({ nodes: [api], depth: 3 }), ['no_worker'])
  assert.deepEqual(kinds({ nodes: [api] }), [])
  const [none, ...more] = attentionTo({ nodes: [] })
  assert.match(none?.message ?? '', /^No process of this service has reported lately: .* mail may not be sent\.$/)
  assert.deepEqual(more, [])
  assert.deepEqual(kinds({ nodes: [], apps: [] }), [], 'a database that was just made')
  assert.deepEqual(kinds({ nodes: [node({ alive: false, seenAt: ago(60) })], depth: 3 }), [
    'no_worker',
    'process_silent',
  ])
})

test('an app that lost the domain of its sender needs attention: its mail waits', () => {
  const app = newApp('acme')
  const lost = { ...app, settings: { ...app.settings, senderDomains: [] } }
  const [found] = attentionTo({ apps: [lost] })
  assert.deepEqual([found?.kind, found?.urgent, found?.apps], ['setting_invalid', true, ['acme']])
  assert.match(found?.message ?? '', /^acme\.test is not a sender domain of acme, so its mail waits\./)
})
