import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dayMs, hourMs } from '../duration.ts'
import type { EmailAddress } from '../request/email-address.ts'
import { failureCauses } from './failure-cause.ts'
import { type Bounce, judgeRecord, type ReportFinding } from './report.ts'
import { parseReply } from './smtp-reply.ts'
import {
  addStrike,
  classifyDestination,
  destinations,
  isMassBounce,
  refusesMailbox,
  type SuppressionTerms,
  setTerms,
  suppressionBy,
} from './suppression.ts'

const t0 = 1_795_200_000_000
const yearMs = 365 * dayMs
const reply = parseReply('550 5.1.1 no such user')

const bounce = (change: Partial<Bounce> = {}): Bounce => ({
  kind: 'bounced',
  about: 'recipient',
  permanent: true,
  cause: 'no_mailbox',
  reply,
  ...change,
})

test('only a permanent failure of the recipient itself, of a mailbox that is not there, and a complaint suppress', () => {
  assert.equal(suppressionBy(bounce()), 'no_mailbox')
  assert.equal(suppressionBy({ kind: 'complained' }), 'complaint')
  const harmless: ReportFinding[] = [
    bounce({ about: 'other' }),
    bounce({ about: 'unknown' }),
    bounce({ permanent: false }),
    ...failureCauses.filter((cause) => cause !== 'no_mailbox').map((cause) => bounce({ cause })),
    { kind: 'delayed', reply },
    { kind: 'not_spam' },
  ]
  for (const finding of harmless) assert.equal(suppressionBy(finding), null, JSON.stringify(finding))
})

test('each strike of a mailbox that is not there suppresses for longer: an hour, a day, a week, 30 days', () => {
  let [terms, nowMs]: [SuppressionTerms | null, number] = [null, t0]
  for (const [n, ms] of [hourMs, dayMs, 7 * dayMs, 30 * dayMs, 30 * dayMs].entries()) {
    terms = addStrike(terms, 'no_mailbox', nowMs)
    const until = nowMs + ms
    assert.deepEqual(terms, {
      reason: 'no_mailbox',
      strikes: n + 1,
      until,
      invitationsUntil: until,
      forgetAt: until + 90 * dayMs,
    })
    nowMs = until
  }
})

test('a complaint is two strikes, and suppresses invitations for a year', () => {
  const first = addStrike(null, 'complaint', t0)
  const invitationsUntil = t0 + yearMs
  assert.deepEqual(first, {
    ...{ reason: 'complaint', strikes: 2, until: t0 + dayMs, invitationsUntil },
    forgetAt: invitationsUntil,
  })
  const second = addStrike(first, 'complaint', t0 + 2 * dayMs)
  assert.deepEqual([second.strikes, second.until], [4, t0 + 32 * dayMs])
  const bounced = addStrike(first, 'no_mailbox', t0 + 2 * dayMs)
  assert.deepEqual(bounced, {
    ...{
      reason: 'complaint',
      strikes: 3,
      until: t0 + 9 * dayMs,
      invitationsUntil,
      forgetAt: invitationsUntil,
    },
  })
})

test('strikes are forgotten 90 days after the end', () => {
  const first = addStrike(null, 'no_mailbox', t0)
  assert.equal(addStrike(first, 'no_mailbox', first.forgetAt - 1).strikes, 2)
  const fresh = addStrike(null, 'no_mailbox', first.forgetAt)
  assert.deepEqual(addStrike(first, 'no_mailbox', first.forgetAt), fresh)
  assert.equal(setTerms(first, first.forgetAt + dayMs, first.forgetAt - 1).strikes, 1)
  assert.equal(setTerms(first, first.forgetAt + dayMs, first.forgetAt).strikes, 0)
})

test("an operator's terms hold for all mail, keep the strikes, and shorten nothing", () => {
  const until = t0 + 3 * dayMs
  const set = setTerms(null, until, t0)
  assert.deepEqual(set, {
    ...{ reason: 'operator', strikes: 0, until, invitationsUntil: until, forgetAt: until + 90 * dayMs },
  })
  const complaint = addStrike(null, 'complaint', t0)
  const longer = setTerms(complaint, until, t0)
  assert.deepEqual(longer, { ...complaint, reason: 'operator', until, forgetAt: complaint.forgetAt })
  assert.deepEqual(setTerms(complaint, t0 + hourMs, t0), { ...complaint, reason: 'operator' })
  assert.deepEqual(setTerms(longer, t0 + hourMs, t0), longer)
})

test('a reason stays until its terms end: that of the operator before a complaint, and that before a bounce', () => {
  const set = setTerms(null, t0 + dayMs, t0)
  assert.equal(addStrike(set, 'complaint', t0).reason, 'operator')
  assert.equal(addStrike(set, 'no_mailbox', t0 + dayMs - 1).reason, 'operator')
  assert.equal(addStrike(set, 'no_mailbox', t0 + dayMs).reason, 'no_mailbox')
  const complaint = addStrike(null, 'complaint', t0)
  assert.equal(addStrike(complaint, 'no_mailbox', t0 + yearMs - 1).reason, 'complaint')
})

type Report = { readonly email: number; readonly finding: ReportFinding }

/** The terms after reports at one moment, each recorded once for an email, as the store does. */
function suppressBy(reports: readonly Report[], known: SuppressionTerms | null = null) {
  const trails = new Map<number, { at: number; outcome: string }[]>()
  return reports.reduce((terms, { email, finding }) => {
    const trail = trails.get(email) ?? []
    const record = { acceptedAt: t0, state: 'delivered', trail } as const
    if (judgeRecord(record, finding.kind, t0).kind === 'already') return terms
    trails.set(email, [...trail, { at: t0, outcome: finding.kind }])
    const reason = suppressionBy(finding)
    return reason === null ? terms : addStrike(terms, reason, t0)
  }, known)
}

const findings: ReportFinding[] = [bounce(), { kind: 'complained' }, { kind: 'delayed', reply }]
const reports = fc.array(fc.record({ email: fc.integer({ min: 0, max: 4 }), finding: fc.constantFrom(...findings) }), {
  maxLength: 12,
})
const knownTerms = fc.option(
  fc
    .tuple(fc.constantFrom('no_mailbox', 'complaint'), fc.integer({ min: 0, max: 400 * dayMs }))
    .map(([reason, agoMs]) => addStrike(null, reason as 'no_mailbox', t0 - agoMs)),
)

test('the same reports in any order, any number of times, give the same suppression', () => {
  const mixed = reports.chain((given) =>
    fc.tuple(
      fc.constant(given),
      fc
        .array(fc.nat(), { maxLength: 12 })
        .map((picks) => [...given, ...picks.flatMap((n) => given[n % given.length] ?? [])])
        .chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
      knownTerms,
    ),
  )
  fc.assert(
    fc.property(mixed, ([given, again, known]) => {
      assert.deepEqual(suppressBy(again, known), suppressBy(given, known))
    }),
  )
})

test('nothing that comes later shortens a suppression', () => {
  const steps = fc.array(
    fc.record({
      waitMs: fc.integer({ min: 0, max: 60 * dayMs }),
      reason: fc.constantFrom('no_mailbox', 'complaint', 'operator'),
      untilMs: fc.integer({ min: -dayMs, max: 100 * dayMs }),
    }),
    { maxLength: 10 },
  )
  fc.assert(
    fc.property(steps, (taken) => {
      let [terms, nowMs]: [SuppressionTerms | null, number] = [null, t0]
      for (const { waitMs, reason, untilMs } of taken) {
        nowMs += waitMs
        const next: SuppressionTerms =
          reason === 'operator' ? setTerms(terms, nowMs + untilMs, nowMs) : addStrike(terms, reason, nowMs)
        const before: SuppressionTerms = terms !== null && nowMs < terms.forgetAt ? terms : next
        assert.ok(next.until >= before.until)
        assert.ok(next.invitationsUntil >= before.invitationsUntil)
        assert.ok(next.forgetAt >= before.forgetAt)
        assert.ok(next.invitationsUntil >= next.until && next.forgetAt >= next.invitationsUntil)
        terms = next
      }
    }),
  )
})

test('mailboxes are gone in masses from 20 on, if they are 30 % of the emails that ended', () => {
  assert.equal(isMassBounce({ gone: 19, ended: 0 }), false)
  assert.equal(isMassBounce({ gone: 20, ended: 0 }), true)
  assert.equal(isMassBounce({ gone: 21, ended: 70 }), true)
  assert.equal(isMassBounce({ gone: 21, ended: 71 }), false)
  assert.equal(isMassBounce({ gone: 1500, ended: 5000 }), true)
  assert.equal(isMassBounce({ gone: 1499, ended: 5000 }), false)
})

test('a destination is a large provider, by the domain alone', () => {
  const cases = {
    'ada@gmail.com': 'gmail',
    'Ada@GoogleMail.COM': 'gmail',
    'ada@hotmail.fr': 'outlook',
    'ada@aol.com': 'yahoo',
    'ada@me.com': 'icloud',
    'ada@web.de': 'gmx',
    'ada@pm.me': 'proton',
    'gmail.com@acme.test': 'other',
    'ada@mail.gmail.com': 'other',
    'ada@notgmail.com': 'other',
  }
  for (const [address, destination] of Object.entries(cases))
    assert.equal(classifyDestination(address as EmailAddress), destination, address)
  assert.deepEqual(new Set(Object.values(cases)), new Set(destinations))
})

test('a refusal in the session needs a definite code: words, and codes that say nothing, may be about the sender', () => {
  const refuses = (reply: string) =>
    refusesMailbox({ kind: 'failed', reason: 'refused_by_relay', relay: 'r', reply: parseReply(reply) })
  assert.ok(refuses('550 5.1.1 <ada@example.com>: User unknown in local recipient table'))
  for (const reply of [
    '550 5.1.0 <auth@acme.test>: Sender address rejected: User unknown in local recipient table',
    '553 Domain of sender address auth@acme.test does not exist',
    '550 no such user',
    '552 5.2.2 mailbox full',
    '550 5.7.1 rejected',
  ])
    assert.ok(!refuses(reply), reply)
  const gone = { reply: parseReply('550 5.1.1 gone'), relay: 'r' }
  assert.ok(!refusesMailbox({ kind: 'failed', reason: 'retries_exhausted', ...gone }))
  assert.ok(!refusesMailbox({ kind: 'deferred', ambiguous: false, waitMs: 1, ...gone }))
})
