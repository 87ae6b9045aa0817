import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptRecord } from '../domain/delivery/outcome.ts'
import { noReply, type Reply } from '../domain/delivery/reply.ts'
import type { ReportKind } from '../domain/delivery/report.ts'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import { dayMs } from '../domain/duration.ts'
import type { AppId, EmailId, KeyId, SuppressionId } from '../domain/id.ts'
import type { EmailRecord } from '../store/operator-store.ts'
import type { SuppressionRecord } from '../store/report-store.ts'
import { type EmailSituation, explainEmail } from './explain-email.ts'

const at = Date.UTC(2026, 10, 21, 22, 26, 40)
const email: EmailRecord = {
  id: 'em_x' as EmailId,
  app: 'app_x' as AppId,
  isTest: false,
  key: 'key_x' as KeyId,
  type: 'magic_link',
  recipient: 'r',
  state: 'queued',
  attempts: 0,
  lostLeases: 0,
  acceptedAt: at,
  expiresAt: at + 6000,
  nextAttemptAt: null,
  finishedAt: null,
  reason: null,
  trail: [],
}

const situation = { disabledApp: null, suppressions: [], nowMs: at } satisfies EmailSituation

const down: AttemptRecord = {
  at,
  outcome: 'unattempted',
  relay: '127.0.0.1:2525',
  reply: noReply('ESOCKET: connect ECONNREFUSED'),
}
const busy: AttemptRecord = { at, outcome: 'deferred', relay: 'r:25', reply: parseReply('451 4.3.0 busy') }
const refused: AttemptRecord = { at, outcome: 'failed', relay: 'r:25', reply: parseReply('552 5.2.2 full') }

const sent: AttemptRecord = { at: at + 300, outcome: 'delivered', relay: 'r:25', reply: parseReply('250 ok') }
const gone = parseReply('550 5.1.1 gone')
const report = (outcome: ReportKind, reply?: Reply): AttemptRecord => ({
  ...{ at: at + 5000, outcome, source: 'mail' },
  ...(reply && { reply }),
})

const cases: [Partial<EmailRecord>, string][] = [
  [{}, 'It is waiting: no worker has taken it yet, or no relay is available.'],
  [
    { trail: [{ at, outcome: 'lost' }] },
    'It is waiting: no worker has taken it yet, or no relay is available. It may have arrived: an attempt got no answer.',
  ],
  [
    { state: 'failed', reason: 'retries_exhausted', trail: [{ at, outcome: 'failed' }] },
    'Not sent: no attempt succeeded within 48 hours.',
  ],
  [{ state: 'cancelled', reason: 'superseded' }, 'Not sent: a newer email with the same kind of link replaced it.'],
  [
    { state: 'cancelled', reason: 'reserved_domain' },
    'Not sent: the domain of its recipient is reserved for tests and documentation (RFC 2606), so it would only bounce. Use an address of your own.',
  ],
  [
    { state: 'deferred', nextAttemptAt: at + 5000, trail: [down] },
    'It was not tried because the relay 127.0.0.1:2525 was unavailable: the connection was refused (ESOCKET: connect ECONNREFUSED). The next attempt is at 2026-11-21 22:26:45Z.',
  ],
  [
    {
      state: 'deferred',
      nextAttemptAt: at,
      trail: [{ at, outcome: 'unattempted', reply: noReply('no key') }],
    },
    'It was not tried: no key. The next attempt is at 2026-11-21 22:26:40Z.',
  ],
  [{ state: 'sending', attempts: 2 }, 'A worker is sending it (attempt 2).'],
  [
    { state: 'deferred', nextAttemptAt: at + 5000, trail: [busy] },
    'The last attempt was deferred by the relay r:25: 451 4.3.0 busy. The next attempt is at 2026-11-21 22:26:45Z.',
  ],
  [
    { state: 'deferred', nextAttemptAt: at, trail: [{ ...busy, ambiguous: true }] },
    'The last attempt was deferred by the relay r:25: 451 4.3.0 busy. The next attempt is at 2026-11-21 22:26:40Z. It may have arrived: an attempt got no answer.',
  ],
  [
    { state: 'delivered', finishedAt: at + 300, trail: [{ at, outcome: 'delivered', relay: 'r:25' }] },
    'The relay r:25 accepted it 300 ms after it was queued.',
  ],
  [
    { state: 'delivered', finishedAt: at + 300, trail: [{ at, outcome: 'delivered', relay: 'capture' }] },
    'The dev inbox captured it 300 ms after it was queued; nothing was sent.',
  ],
  [
    { state: 'expired', trail: [down] },
    'Not sent: the relay 127.0.0.1:2525 was unavailable: the connection was refused (ESOCKET: connect ECONNREFUSED), until the link expired at 2026-11-21 22:26:46Z.',
  ],
  [{ state: 'expired' }, 'Not sent: no attempt was made before the link expired at 2026-11-21 22:26:46Z.'],
  [
    { state: 'expired', trail: [busy] },
    'Not sent: the relay r:25 deferred it (451 4.3.0 busy) until the link expired at 2026-11-21 22:26:46Z.',
  ],
  [
    { state: 'failed', reason: 'refused_by_relay', trail: [refused] },
    'Not sent: the relay r:25 refused it: the mailbox is full (552 5.2.2 full).',
  ],
  [
    { state: 'failed', reason: 'retries_exhausted', trail: [busy] },
    'Not sent: no attempt succeeded within 48 hours. The last one: 451 4.3.0 busy.',
  ],
  [
    { state: 'deferred', nextAttemptAt: at + 5000, lostLeases: 3, trail: [{ at, outcome: 'lost' }] },
    'The next attempt is at 2026-11-21 22:26:45Z. It may have arrived: an attempt got no answer. It has lost 3 leases: each time its worker died, hung, or lost its connection to the database. If this email crashes its workers, cancel it.',
  ],
  [
    {
      state: 'delivered',
      finishedAt: at + 2000,
      lostLeases: 2,
      trail: [{ at, outcome: 'delivered', relay: 'relay:25' }],
    },
    'The relay relay:25 accepted it 2 s after it was queued. It has lost 2 leases: each time its worker died, hung, or lost its connection to the database.',
  ],
  [
    { state: 'expired', trail: [{ at, outcome: 'lost' }] },
    'Not confirmed: every worker that tried it died or lost its lease before the link expired at 2026-11-21 22:26:46Z. It may have arrived: an attempt got no answer.',
  ],
  [
    { state: 'expired', trail: [{ ...busy, ambiguous: true }, busy] },
    'Not confirmed: the relay r:25 deferred it (451 4.3.0 busy) until the link expired at 2026-11-21 22:26:46Z. It may have arrived: an attempt got no answer.',
  ],
  [
    { state: 'expired', trail: [{ at, outcome: 'deferred', reply: noReply('internal error') }] },
    'Not sent: the last attempt failed inside Postern (internal error), and then the link expired at 2026-11-21 22:26:46Z.',
  ],
  [
    { state: 'deferred', nextAttemptAt: at, trail: [{ at, outcome: 'deferred', reply: noReply('x') }] },
    'The last attempt failed inside Postern: x. The next attempt is at 2026-11-21 22:26:40Z.',
  ],
  [{ state: 'failed', reason: 'unreadable' }, 'Not sent: its stored content is damaged.'],
  [
    { state: 'bounced', reason: 'no_mailbox', finishedAt: at + 300, trail: [sent, report('bounced', gone)] },
    'The relay r:25 accepted it 300 ms after it was queued. Then it bounced: the mailbox does not exist (550 5.1.1 gone; a report came after 5 s).',
  ],
  [
    { state: 'complained', finishedAt: at + 300, trail: [sent, report('complained')] },
    'The relay r:25 accepted it 300 ms after it was queued. Its recipient reported it as spam: a report came after 5 s.',
  ],
  [
    {
      state: 'delivered',
      finishedAt: at + 300,
      trail: [sent, report('delayed', parseReply('451 4.7.1 later'))],
    },
    'The relay r:25 accepted it 300 ms after it was queued. It is delayed: 451 4.7.1 later; a report came after 5 s.',
  ],
  [
    {
      state: 'delivered',
      finishedAt: at + 300,
      trail: [sent, report('delayed', parseReply('451 4.7.1 later')), report('confirmed')],
    },
    'The relay r:25 accepted it 300 ms after it was queued. Then it was delivered to its recipient’s server: a report came after 5 s.',
  ],
  [{ state: 'cancelled', reason: 'by_operator' }, 'Not sent: an operator cancelled it.'],
  [
    { state: 'cancelled', reason: 'app_inactive' },
    'Not sent: its app was deleted, or disabled or suspended for 7 days.',
  ],
]
for (const [change, expected] of cases) {
  test(expected, () => assert.equal(explainEmail({ ...email, ...change }, situation), expected))
}

test('a suppressed email says why, and until when, since which email and for which apps it lasts', () => {
  const suppressed = { ...email, state: 'suppressed', reason: 'no_mailbox' } as const
  const explain = (...suppressions: SuppressionRecord[]) => explainEmail(suppressed, { ...situation, suppressions })
  const why = 'Not sent: its recipient was suppressed, because a mail server had said that the mailbox does not exist.'
  assert.equal(explain(), `${why} It is no longer suppressed.`)
  const one: SuppressionRecord = {
    ...{
      id: 'sp_1' as SuppressionId,
      app: email.app,
      reason: 'no_mailbox',
      strikes: 1,
      destination: 'other',
    },
    ...{ at, until: at + 3_600_000, invitationsUntil: at + 3_600_000, forgetAt: at + dayMs, bouncedAt: at },
    ...{ email: 'em_0' as EmailId, reply: '550 5.1.1 gone' },
  }
  const hour = '2026-11-21 23:26:40Z'
  assert.equal(explain(one), `${why} Its recipient is suppressed until ${hour}, since the email em_0 (550 5.1.1 gone).`)
  assert.match(explain({ ...one, reply: null }), /, since the email em_0\.$/)
  const invitations = { ...one, invitationsUntil: at + 7_200_000 }
  assert.match(
    explain(invitations),
    / until 2026-11-21 23:26:40Z, and for invitations until 2026-11-22 00:26:40Z, since/,
  )
  const later = { ...situation, nowMs: at + 3_600_000 }
  assert.match(
    explainEmail(suppressed, { ...later, suppressions: [invitations] }),
    / Its recipient is suppressed for invitations until 2026-11-22 00:26:40Z, since/,
  )
  const all = { ...one, app: null, reason: 'operator', email: null, reply: null } as const
  assert.equal(explain(all), `${why} Its recipient is suppressed for all apps until ${hour}.`)
  const own = { ...email, state: 'bounced', reason: 'no_mailbox' } as const
  const struck = explainEmail(own, { ...situation, suppressions: [{ ...one, email: email.id }] })
  assert.ok(struck.endsWith(` Its recipient is suppressed until ${hour}.`), struck)
})

test('mail of a disabled app is held, whatever its next attempt; a finished one is explained as usual', () => {
  const held =
    'It is held: the app acme is disabled or suspended. It will be sent if the app is enabled before the link expires at '
  for (const state of ['queued', 'deferred'] as const)
    assert.equal(
      explainEmail({ ...email, state }, { ...situation, disabledApp: 'acme' }),
      `${held}2026-11-21 22:26:46Z.`,
    )
  // Cancelled only if its link lives longer than mail is held.
  const long = { ...email, expiresAt: at + 8 * dayMs }
  assert.equal(
    explainEmail(long, { ...situation, disabledApp: 'acme' }),
    `${held}2026-11-29 22:26:40Z; after 7 days it is cancelled.`,
  )
  const cancelled = { ...email, state: 'cancelled', reason: 'app_inactive' } as const
  assert.equal(explainEmail(cancelled, { ...situation, disabledApp: 'acme' }), explainEmail(cancelled, situation))
})
