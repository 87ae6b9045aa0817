import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import type { AppId, EmailId, KeyId } from '../domain/id.ts'
import { ActivityCounter } from './activity-counter.ts'
import type { AttemptRecorded, RequestAnswered } from './events.ts'

const app = 'app_1' as AppId
const hour = 3_600_000

const attempt = (outcome: AttemptRecorded['outcome'], sinceAcceptedMs = 80): AttemptRecorded => ({
  kind: 'attempt_recorded',
  emailId: 'em_1' as EmailId,
  appId: app,
  type: 'magic_link',
  attempt: 1,
  traceId: null,
  outcome,
  sinceAcceptedMs,
  tookMs: 1,
})
const delivered = attempt({ kind: 'delivered', relay: 'r:25', reply: parseReply('250 2.0.0 ok') })
const asked = {
  kind: 'request_answered',
  source: 'api',
  message: null,
  requestId: 'req_0',
  traceId: null,
  appId: app,
  tookMs: 1,
} as const
const refused = (serial: number, appId: AppId | null = app): RequestAnswered => ({
  ...asked,
  requestId: `req_${serial}`,
  appId,
  keyId: appId && ('key_1' as KeyId),
  status: 403,
  code: 'url_not_allowed',
  issues: Array.from({ length: 30 }, (_, n) => `field${n} wrong`),
  origin: 'https://a.test',
  recipient: 'name',
})

test('an event counts for the minute of the service, and for the hour and minute of its app', () => {
  const clock = { ms: 5 * hour + 59 * 60_000 }
  const counter = new ActivityCounter(() => clock.ms)
  assert.ok(counter.isEmpty)
  counter.observe(delivered)
  counter.observe(delivered)
  clock.ms += 60_000
  counter.observe(attempt({ kind: 'expired' }))
  counter.observe({ kind: 'leases_taken_back', lost: [{ emailId: 'em_1' as EmailId, count: 1 }] })
  assert.ok(!counter.isEmpty)
  const rows = counter.takeCounts().map((row) => `${row.app} ${row.span} ${row.minute} ${row.event} ${row.count}`)
  assert.deepEqual(rows.toSorted(), [
    'app_1 1 359 delivered 2',
    'app_1 1 360 expired 1',
    'app_1 60 300 delivered 2',
    'app_1 60 300 reply:250 2.0.0 2',
    'app_1 60 300 took:100 2',
    'app_1 60 360 expired 1',
    'null 1 359 delivered 2',
    'null 1 359 delivered_by:r:25 2',
    'null 1 359 reply:250 2.0.0 2',
    'null 1 359 took:100 2',
    'null 1 360 expired 1',
    'null 1 360 lost 1',
  ])
  assert.deepEqual(counter.takeCounts(), [])
})

test('accepted requests count for the hour of their key, of 200 keys at most', () => {
  const counter = new ActivityCounter(() => 5 * hour)
  const accept = (key: string, code: 'accepted' | 'replayed' = 'accepted') => {
    const end = code === 'accepted' ? ({ code, language: 'none' } as const) : { code }
    counter.observe({ ...asked, keyId: key as KeyId, status: 202, emailId: 'em_1' as EmailId, ...end })
  }
  accept('key_1')
  accept('key_1')
  accept('key_1', 'replayed')
  const rows = counter.takeCounts().filter(({ event }) => event.startsWith('key:'))
  assert.deepEqual(rows, [{ app, span: 60, minute: 300, event: 'key:key_1', count: 2 }])
  for (let n = 0; n < 300; n++) accept(`key_${n}`)
  assert.equal(counter.takeCounts().filter(({ event }) => event.startsWith('key:')).length, 199)
})

test('emails that ended without an attempt are counted by their end', () => {
  const counter = new ActivityCounter(() => hour)
  const ended = [
    { state: 'expired', reason: null },
    { state: 'failed', reason: 'retries_exhausted' },
    { state: 'cancelled', reason: 'superseded' },
    { state: 'expired', reason: null },
  ] as const
  const ids = { emailId: 'em_1' as EmailId, appId: app }
  counter.observe({ kind: 'emails_ended', ended: ended.map((end) => ({ ...ids, ...end })) })
  const rows = counter.takeCounts().filter((row) => row.app === app && row.span === 1)
  assert.deepEqual(
    rows.map(({ event, count }) => [event, count]),
    [
      ['expired', 2],
      ['failed:retries_exhausted', 1],
      ['cancelled', 1],
    ],
  )
})

test('a relay that knows no such mailbox counts as one that is gone; another refusal does not', () => {
  const counter = new ActivityCounter(() => hour)
  const fail = (text: string) =>
    attempt({ kind: 'failed', reason: 'refused_by_relay', relay: 'r:25', reply: parseReply(text) })
  counter.observe(fail('550 5.7.1 blocked'))
  assert.ok(!counter.takeCounts().some(({ event }) => event === 'gone'))
  counter.observe(fail('550 5.1.1 no such user'))
  assert.equal(counter.takeCounts().find(({ event }) => event === 'gone')?.count, 1)
})

test('forty different replies of relays are counted by themselves, and further ones together', () => {
  const counter = new ActivityCounter(() => 0)
  for (let n = 0; n < 45; n++) {
    const reply = parseReply(`4${String(n).padStart(2, '0')} later`)
    counter.observe(attempt({ kind: 'deferred', relay: 'r:25', reply, ambiguous: false, waitMs: 1 }))
  }
  const replies = counter.takeCounts().filter(({ app, event }) => app === null && event.startsWith('reply:'))
  assert.equal(replies.length, 41)
  assert.equal(replies.find(({ event }) => event === 'reply:other')?.count, 5)
  counter.observe(
    attempt({ kind: 'deferred', relay: 'r:25', reply: parseReply('499 new'), ambiguous: false, waitMs: 1 }),
  )
  assert.ok(
    counter.takeCounts().some(({ event }) => event === 'reply:499'),
    'forty more after each write',
  )
})

test('the newest hundred refusals of an app are kept, with some of their faults; those of no app are counted alone', () => {
  const counter = new ActivityCounter(() => 7)
  for (let n = 0; n < 105; n++) counter.observe(refused(n))
  counter.observe(refused(999, null))
  const kept = counter.takeRefusals()
  assert.deepEqual([kept.length, kept[0]?.requestId, kept[0]?.issues.length], [100, 'req_5', 10])
  assert.deepEqual(counter.takeRefusals(), [])
  const count = counter.takeCounts().find(({ app }) => app === null)
  assert.deepEqual([count?.event, count?.count], ['refused:url_not_allowed', 106])
})

test('a bounce counts by its cause, a complaint as one; reports that were not recorded, and delays, do not count', () => {
  const counter = new ActivityCounter(() => hour)
  const report = {
    kind: 'report_received',
    source: 'mail',
    emailId: 'em_1' as EmailId,
    appId: app,
  } as const
  const bounced = { ...report, finding: 'bounced', cause: 'mailbox_full', isGone: false } as const
  counter.observe({ ...bounced, isGone: true, result: 'already' })
  for (const result of ['already', 'waiting', 'stale', 'unknown', 'unmatched', 'no_report'] as const)
    counter.observe({ ...bounced, result })
  counter.observe({ ...report, finding: 'delayed', cause: null, isGone: false, result: 'recorded' })
  assert.ok(counter.isEmpty)
  counter.observe({ ...bounced, result: 'recorded' })
  counter.observe({ ...bounced, cause: 'no_mailbox', isGone: true, result: 'recorded' })
  counter.observe({ ...report, finding: 'complained', cause: null, isGone: false, result: 'recorded' })
  const rows = counter.takeCounts().filter((row) => row.app === null)
  assert.deepEqual(
    rows.map(({ event, count }) => [event, count]),
    [
      ['bounced:mailbox_full', 1],
      ['gone', 1],
      ['bounced:no_mailbox', 1],
      ['complained', 1],
    ],
  )
})
