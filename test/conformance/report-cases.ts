/** Conformance: reports about emails after their delivery. */
import assert from 'node:assert/strict'
import { delayedReportsMax, reportDays } from '../../src/domain/bounds.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import type { ReportFinding, ReportSource } from '../../src/domain/delivery/report.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { type EmailId, newId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { claim, day, delivered, type It, newSender, request, type Sender } from './subject.ts'

const reply = parseReply('550 5.1.1 no such user')
const bounced = { kind: 'bounced', about: 'recipient', permanent: true, cause: 'no_mailbox', reply } as const
const delayed: ReportFinding = { kind: 'delayed', reply: parseReply('451 4.2.0 greylisted') }
const complained: ReportFinding = { kind: 'complained' }
const confirmed: ReportFinding = { kind: 'confirmed' }

async function queue(store: Store, sender: Sender): Promise<EmailId> {
  const queued = await store.enqueue(request(store, sender))
  assert.ok(queued.kind === 'queued')
  return queued.emailId
}

async function end(store: Store, sender: Sender, outcome: DeliveryOutcome = delivered): Promise<EmailId> {
  const id = await queue(store, sender)
  for (const lease of await claim(store)) assert.ok(await store.recordOutcome(lease, outcome))
  return id
}

export function reports(it: It): void {
  const report = async (store: Store, email: EmailId, ...findings: readonly ReportFinding[]) => {
    const kinds = []
    for (const finding of findings)
      kinds.push((await store.recordReport({ email, source: 'mail', finding, destination: 'other' })).kind)
    return kinds
  }
  const show = async (store: Store, id: EmailId) => {
    const email = await store.findEmail(id)
    assert.ok(email)
    return { state: email.state, reason: email.reason, lines: email.trail.map(({ outcome }) => outcome) }
  }

  it('a bounce changes a delivered email, once; a line of the record says how it came', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'acme')
    const [one, two] = [await end(store, sender), await end(store, sender)]
    advance(5000)
    const at = store.now()
    const made = await store.recordReport({
      email: one,
      source: 'read',
      finding: bounced,
      destination: 'other',
    })
    assert.ok(made.kind === 'recorded')
    assert.deepEqual([made.app, made.state, made.strike.kind], [sender.app.id, 'bounced', 'suppressed'])
    assert.deepEqual(await report(store, one, bounced, bounced), ['already', 'already'])
    const email = await store.findEmail(one)
    assert.deepEqual([email?.state, email?.reason], ['bounced', 'no_mailbox'])
    const line = email?.trail.at(-1)
    assert.ok(line && line.at >= at)
    assert.deepEqual(line, { at: line.at, outcome: 'bounced', source: 'read', reply })
    assert.equal((await show(store, two)).state, 'delivered')
    assert.deepEqual((await store.readUsageToday(null)).get(sender.app.id), {
      accepted: 2,
      delivered: 2,
      bounced: 1,
    })
  })

  it('reports of every kind, in any order: the state that they leave', async (_t, { store }) => {
    const sender = await newSender(store, 'acme')
    const cases: [ReportFinding[], string, string | null][] = [
      [[delayed], 'delivered', null],
      [[delayed, bounced], 'bounced', 'no_mailbox'],
      [[bounced, delayed], 'bounced', 'no_mailbox'],
      [[bounced, complained], 'complained', null],
      [[complained, bounced], 'complained', null],
      [[complained, { kind: 'not_spam' }], 'delivered', null],
      [[{ kind: 'not_spam' }], 'delivered', null],
      [[confirmed], 'delivered', null],
      [[delayed, confirmed, bounced], 'bounced', 'no_mailbox'],
      [[bounced, confirmed], 'bounced', 'no_mailbox'],
      [[{ ...bounced, permanent: false, cause: 'mailbox_full' }], 'bounced', 'mailbox_full'],
    ]
    for (const [findings, state, reason] of cases) {
      const id = await end(store, sender)
      assert.deepEqual(
        await report(store, id, ...findings),
        findings.map(() => 'recorded'),
      )
      assert.deepEqual(await show(store, id), {
        ...{ state, reason },
        lines: ['delivered', ...findings.map(({ kind }) => kind)],
      })
    }
    const counts = (await store.readUsageToday(null)).get(sender.app.id)
    assert.deepEqual([counts?.bounced, counts?.complained], [6, 3])
    assert.equal(counts?.delivered, cases.length, 'each was delivered once')
  })

  it('an email that never left keeps the state that says why', async (_t, { store }) => {
    const sender = await newSender(store, 'acme')
    const failed = { kind: 'failed', reply, relay: 'r', reason: 'refused_by_relay' } as const
    const id = await end(store, sender, failed)
    const cancelled = await queue(store, sender)
    await store.cancelEmail(cancelled, operator)
    for (const email of [id, cancelled])
      assert.deepEqual(await report(store, email, bounced, complained), ['recorded', 'recorded'])
    assert.deepEqual(await show(store, id), {
      ...{ state: 'failed', reason: 'refused_by_relay' },
      lines: ['failed', 'bounced', 'complained'],
    })
    assert.deepEqual((await show(store, cancelled)).state, 'cancelled')
  })

  it('a report waits while its email is in the queue, and counts for ten days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'acme')
    const id = await queue(store, sender)
    assert.deepEqual(await report(store, id, bounced), ['waiting'])
    const [lease] = await claim(store)
    assert.ok(lease)
    assert.deepEqual(await report(store, id, bounced), ['waiting'], 'it is being sent')
    await store.recordOutcome(lease, delivered)
    const late = await end(store, sender)
    advance(reportDays * day - 10_000)
    assert.deepEqual(await report(store, id, bounced), ['recorded'])
    advance(20_000)
    assert.deepEqual(await report(store, late, bounced), ['stale'])
    assert.deepEqual(await report(store, newId('em', store.now()), bounced), ['unknown'])
  })

  it('of reports of a delay, one an hour is kept, and ten in all', async (_t, { store, advance }) => {
    const id = await end(store, await newSender(store, 'acme'))
    assert.deepEqual(await report(store, id, delayed, delayed), ['recorded', 'already'])
    for (let n = 1; n < delayedReportsMax; n++) {
      advance(3_600_000)
      assert.deepEqual(await report(store, id, delayed), ['recorded'])
    }
    advance(3_600_000)
    assert.deepEqual(await report(store, id, delayed), ['already'])
    assert.deepEqual(await report(store, id, bounced), ['recorded'])
  })

  it('when each source was last heard is known to the minute, of emails that there are', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'acme')
    const hear = async (source: ReportSource, email: EmailId, finding = bounced as ReportFinding) => {
      await store.recordReport({ email, source, finding, destination: 'other' })
      return Object.fromEntries((await store.listReportSources()).map(({ source: name, heardAt }) => [name, heardAt]))
    }
    const queued = await queue(store, sender)
    assert.deepEqual(await hear('resend', queued), {}, 'it is in the queue')
    const id = await end(store, sender)
    assert.deepEqual(await hear('resend', newId('em', store.now())), {}, 'there is none')
    const first = await hear('resend', id)
    assert.ok(Math.abs((first.resend ?? 0) - store.now()) < 10_000)
    assert.deepEqual(await hear('resend', id), first)
    advance(3_600_000)
    const later = await hear('resend', id)
    assert.ok((later.resend ?? 0) - (first.resend ?? 0) > 3_590_000, 'a report that is known counts')
    assert.deepEqual(Object.keys(await hear('mail', id)), ['mail', 'resend'])
  })

  it('two processes that get the same report at once record it once', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'acme')
    const other = await reopen()
    t.after(() => other.close())
    for (let n = 0; n < 10; n++) {
      const id = await end(store, sender)
      const results = await Promise.all([store, other, store, other].map((on) => report(on, id, bounced)))
      assert.deepEqual(results.flat().toSorted(), ['already', 'already', 'already', 'recorded'])
    }
    assert.equal((await store.readUsageToday(null)).get(sender.app.id)?.bounced, 10)
  })

  it('the reports of seven days are known for every app, beside what was delivered', async (_t, { store, advance }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await report(store, await end(store, one), bounced)
    advance(6 * day)
    const [bounces, annoys] = [await end(store, one), await end(store, two)]
    await end(store, two)
    await report(store, bounces, bounced)
    await report(store, annoys, delayed, complained)
    const read = async (sender: Sender) => (await store.readReportedUsage(null)).get(sender.app.id)
    assert.deepEqual(await read(one), { delivered: 2, bounced: 2 })
    assert.deepEqual(await read(two), { delivered: 2, complained: 1 })
    assert.deepEqual([...(await store.readReportedUsage([two.app.id])).keys()], [two.app.id])
    advance(day)
    assert.deepEqual(await read(one), { delivered: 1, bounced: 1 })
    advance(6 * day)
    assert.equal(await read(two), undefined)
  })
}
