import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import { addCounters } from './counters.ts'
import type { AttemptRecorded, PosternEvent } from './events.ts'

async function countAll(...events: PosternEvent[]): Promise<Map<string, number>> {
  const registry = new Registry()
  const counters = addCounters(registry)
  counters.addRelay('r:25')
  for (const event of events) counters.observe(event)
  const lines = (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
}

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

test('times are in seconds', async () => {
  const seen = await countAll(
    { kind: 'group_written', calls: 7, tookMs: 2500 },
    { kind: 'mail_claimed', count: 9, tookMs: 1500 },
    attempt({ kind: 'delivered', relay: 'r:25', reply }),
  )
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
