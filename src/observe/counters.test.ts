import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import { addCounters } from './counters.ts'
import type { AttemptRecorded, PosternEvent, RequestAnswered } from './events.ts'

async function countAll(...events: PosternEvent[]): Promise<Map<string, number>> {
  const registry = new Registry()
  const counters = addCounters(registry)
  counters.addRelay('r:25')
  for (const event of events) counters.observe(event)
  const lines = (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
}

test('what may happen to reports has its series from the start, with causes for bounces alone', async () => {
  const seen = await countAll()
  assert.equal(seen.get('postern_reports_total{source="mail",kind="bounced",cause="mailbox_full"}'), 0)
  assert.equal(seen.get('postern_reports_total{source="mail",kind="complained",cause=""}'), 0)
  assert.ok(!seen.has('postern_reports_total{source="mail",kind="complained",cause="mailbox_full"}'))
})

test('a relay that is added has its series, at 0', async () => {
  const seen = await countAll()
  assert.equal(seen.get('postern_attempts_ambiguous_total{relay="r:25"}'), 0)
  assert.equal(seen.get('postern_attempt_duration_seconds_count{relay="r:25"}'), 0)
  assert.equal(seen.get('postern_attempts_total{outcome="delivered",relay="r:25",cause=""}'), 0)
  assert.equal(seen.get('postern_attempts_total{outcome="failed",relay="r:25",cause="no_mailbox"}'), 0)
})

const attempt = (outcome: AttemptRecorded['outcome']): AttemptRecorded => ({
  kind: 'attempt_recorded',
  emailId: 'em_1' as EmailId,
  appId: 'app_1' as AppId,
  type: 'magic_link',
  attempt: 1,
  traceId: null,
  outcome,
  sinceAcceptedMs: 4500,
  tookMs: 2500,
})
const reply = parseReply('250 2.0.0 ok')
const later = parseReply('451 4.7.1 later')

const refusedRequest: RequestAnswered = {
  ...{ kind: 'request_answered', source: 'api', message: null, requestId: 'req_1', traceId: null },
  ...{ appId: null, keyId: null, issues: [], origin: null, recipient: null, tookMs: 1 },
  ...{ status: 429, code: 'key_rate_limited' },
}

test('times are in seconds', async () => {
  const seen = await countAll(
    { kind: 'group_written', calls: 7, tookMs: 2500 },
    { kind: 'mail_claimed', count: 9, tookMs: 1500 },
    attempt({ kind: 'delivered', relay: 'r:25', reply }),
    { ...refusedRequest, tookMs: 2500 },
  )
  assert.equal(seen.get('postern_request_duration_seconds_sum{status="429"}'), 2.5)
  assert.equal(seen.get('postern_store_group_seconds_sum'), 2.5)
  assert.equal(seen.get('postern_store_group_calls_sum'), 7)
  assert.equal(seen.get('postern_claim_seconds_sum'), 1.5)
  assert.equal(seen.get('postern_claimed_emails_sum'), 9)
  assert.equal(seen.get('postern_attempt_duration_seconds_sum{relay="r:25"}'), 2.5)
  assert.equal(seen.get('postern_accept_to_delivered_seconds_sum'), 4.5)
})

test('an email ends once: neither a deferral nor an attempt that was not made ends it', async () => {
  const deferred = { kind: 'deferred', relay: 'r:25', reply: later, waitMs: 1 } as const
  const seen = await countAll(
    attempt({ ...deferred, ambiguous: true }),
    attempt({ ...deferred, ambiguous: false }),
    attempt({ kind: 'delivered', relay: 'r:25', reply }),
    attempt({ kind: 'expired' }),
  )
  const ends = [...seen].filter(([name, count]) => name.startsWith('postern_emails_finished') && count > 0)
  assert.deepEqual(Object.fromEntries(ends), {
    'postern_emails_finished_total{state="delivered",reason=""}': 1,
    'postern_emails_finished_total{state="expired",reason=""}': 1,
  })
  assert.equal(seen.get('postern_attempts_ambiguous_total{relay="r:25"}'), 1)
  assert.equal(seen.get('postern_attempts_total{outcome="deferred",relay="r:25",cause="policy"}'), 2)
  assert.equal(seen.get('postern_accept_to_delivered_seconds_count'), 1)
})

const [emailId, appId, requestId] = ['em_1' as EmailId, 'app_1' as AppId, 'req_1']
const bounce = {
  ...({ kind: 'report_received', source: 'mail', finding: 'bounced', cause: 'mailbox_full' } as const),
  ...{ isGone: false, emailId, appId },
}
const accepted: RequestAnswered = {
  ...({ kind: 'request_answered', source: 'kratos', message: 'x', requestId, traceId: null } as const),
  ...{ appId, keyId: null, tookMs: 1, emailId, language: 'de' },
  ...({ status: 202, code: 'accepted' } as const),
}
const webhook = { appId, emailId, event: 'email.failed' } as const
const grown: [PosternEvent, string, number?][] = [
  [accepted, 'requests_total{source="kratos",status="202",code="accepted"}'],
  [accepted, 'emails_language_total{language="de"}'],
  [refusedRequest, 'requests_total{source="api",status="429",code="key_rate_limited"}'],
  [
    { kind: 'provider_call_refused', provider: 'brevo', requestId, reason: null },
    'reports_refused_total{source="brevo"}',
  ],
  [{ ...bounce, result: 'recorded' }, 'reports_total{source="mail",kind="bounced",cause="mailbox_full"}'],
  [{ ...bounce, result: 'stale' }, 'reports_unmatched_total{source="mail"}'],
  [{ ...bounce, result: 'unmatched' }, 'reports_unmatched_total{source="mail"}'],
  [
    { kind: 'webhook_tried', ...webhook, outcome: 'given_up', result: '500', tries: 9, tookMs: 1 },
    'app_webhooks_total{result="given_up"}',
  ],
  [{ kind: 'webhook_lost', ...webhook }, 'app_webhooks_total{result="lost"}'],
  [
    { kind: 'leases_taken_back', lost: [emailId, emailId].map((id) => ({ emailId: id, count: 1 })) },
    'leases_lost_total',
    2,
  ],
  [{ kind: 'store_unavailable', requestId, error: new Error('x'), work: 'page' }, 'store_failures_total{work="page"}'],
  [{ kind: 'store_write_failed', error: 'x' }, 'store_failures_total{work="delivery"}'],
  [
    { kind: 'console_sign_in', method: 'code', result: 'refused', requestId },
    'console_sign_ins_total{method="code",result="refused"}',
  ],
  [{ kind: 'link_viewed', result: 'pressed' }, 'hosted_link_views_total{result="pressed"}'],
  [{ kind: 'bug', doing: 'testing', error: 'x' }, 'internal_errors_total'],
  [
    { kind: 'emails_ended', ended: [{ emailId, appId, state: 'failed', reason: 'retries_exhausted' }] },
    'emails_finished_total{state="failed",reason="retries_exhausted"}',
  ],
]
for (const [event, series, by = 1] of grown)
  test(`${event.kind} ${'result' in event ? event.result : ''} is counted by ${series}`, async () => {
    const seen = await countAll(event)
    assert.equal(seen.get(`postern_${series}`), by)
  })

test('of reports, one that was recorded already, or waits, counts nowhere', async () => {
  const seen = await countAll({ ...bounce, result: 'already' }, { ...bounce, result: 'waiting' })
  const counted = [...seen].filter(([name, count]) => name.startsWith('postern_reports') && count > 0)
  assert.deepEqual(counted, [])
})
