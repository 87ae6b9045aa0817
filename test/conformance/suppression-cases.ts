/** Conformance: suppressions of recipients by reports, and the brake on those of mass bounces. */
import assert from 'node:assert/strict'
import { failureCauses } from '../../src/domain/delivery/failure-cause.ts'
import type { Bounce, ReportFinding } from '../../src/domain/delivery/report.ts'
import type { Destination } from '../../src/domain/delivery/suppression.ts'
import { minuteMs } from '../../src/domain/duration.ts'
import type { AppId, EmailId } from '../../src/domain/id.ts'
import type { ActivityEvent } from '../../src/domain/operator/activity.ts'
import type { SuppressionRecord } from '../../src/store/report-store.ts'
import type { Store } from '../../src/store/store.ts'
import { listEmails } from '../support/operator.ts'
import { day, type It, kinds, type Subject } from './subject.ts'
import { lists, requests } from './suppressed-cases.ts'
import {
  ada,
  ask,
  bob,
  bounced,
  clear,
  clockMs,
  complained,
  deliver,
  find,
  hour,
  list,
  reply,
  report,
  type SharedCases,
  share,
  strikeRefused,
  suppress,
} from './suppression-subject.ts'

const year = 365 * day

const terms = ({ at, destination, invitationsUntil, reason, strikes, until }: SuppressionRecord) => ({
  ...{ destination, reason, strikes },
  forMs: until - at,
  invitationsForMs: invitationsUntil - at,
})

const strikes: SharedCases = {
  'each email whose mailbox is not there suppresses its recipient for longer': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender()
    for (const [n, forMs] of [hour, day, 7 * day, 30 * day, 30 * day].entries()) {
      const [email] = await deliver(store, sender, [ada])
      const strike = await report(store, email, bounced, { destination: 'gmail' })
      const found = await find(store, ada)
      assert.deepEqual(strike, { kind: 'suppressed', until: found.until })
      assert.deepEqual(terms(found), {
        ...{ destination: 'gmail', reason: 'no_mailbox', strikes: n + 1, forMs, invitationsForMs: forMs },
      })
      assert.deepEqual([found.app, found.email, found.reply], [sender.app.id, email, reply.text])
      advance(forMs - clockMs)
      assert.equal(await ask(store, sender, { to: ada }), 'suppressed')
      advance(2 * clockMs)
      assert.deepEqual(await list(store), [], 'it has ended')
    }
    advance(90 * day)
    await report(store, (await deliver(store, sender, [ada]))[0], bounced)
    assert.equal((await find(store, ada)).strikes, 1, 'the others are forgotten')
  },

  'an email strikes once, however often and by whichever way its bounce is reported': async ({
    store,
    reopen,
    newSender,
  }) => {
    const sender = await newSender()
    const other = await reopen()
    const [email] = await deliver(store, sender, [ada])
    const ways = ['mail', 'read', 'mail', 'read'] as const
    await Promise.all(ways.map((source, n) => report(n < 2 ? store : other, email, bounced, { source })))
    assert.equal((await find(store, ada)).strikes, 1)
    const failed = { kind: 'failed', reply, relay: 'r', reason: 'refused_by_relay' } as const
    const [refused] = await deliver(store, sender, [bob], failed)
    await store.strikeRefused({ email: refused as EmailId, destination: 'other', reply: reply.text })
    for (const source of ['mail', 'read'] as const) await report(store, refused, bounced, { source })
    assert.equal((await find(store, bob)).strikes, 1)
    assert.equal((await store.findEmail(refused as EmailId))?.trail.length, 2, 'one line, of the report by mail')
  },

  'emails that were under way when one bounced strike no more; later ones do': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender()
    const emails = await deliver(store, sender, [ada, ada, ada, ada])
    await strikeRefused(store, emails[0])
    advance(60_000)
    for (const email of emails.slice(1)) await report(store, email, bounced)
    await report(store, emails[0], complained)
    await report(store, emails[0], bounced)
    const { strikes, until, at } = await find(store, ada)
    assert.deepEqual([strikes, until - at], [3, 7 * day])
    advance(8 * day)
    const [later] = await deliver(store, sender, [ada])
    await report(store, later, bounced)
    assert.equal((await find(store, ada)).strikes, 4)
  },

  'only the email that was complained about takes its complaint back': async ({ store, newSender }) => {
    const sender = await newSender()
    const [one, two] = await deliver(store, sender, [ada, ada])
    await report(store, one, complained)
    await report(store, two, { kind: 'not_spam' })
    assert.equal((await find(store, ada)).reason, 'complaint')
    await report(store, one, { kind: 'not_spam' })
    assert.deepEqual(await list(store), [])
  },

  'the same reports in any order, and repeated, leave the same suppression': async ({ store, newSender }) => {
    const sender = await newSender({ recipientPerHour: 1000 })
    const orders = [
      ['a', 'b', 'A'],
      ['A', 'b', 'a'],
      ['b', 'A', 'a'],
      ['A', 'a', 'b', 'A', 'a', 'b'],
      ['b', 'b', 'a', 'a', 'A', 'b'],
    ]
    const found = []
    for (const [n, order] of orders.entries()) {
      const to = `r${n}@example.com`
      const [a, b] = await deliver(store, sender, [to, to])
      for (const letter of order)
        if (letter === 'A') await report(store, a, complained)
        else await report(store, letter === 'a' ? a : b, bounced, { destination: 'gmx' })
      const { destination, reason, strikes, until } = await find(store, to)
      found.push({ destination, reason, strikes, days: Math.round((until - store.now()) / day) })
    }
    // Both emails were under way when the first bounce came.
    const same = { destination: 'gmx', reason: 'complaint', strikes: 3, days: 7 }
    assert.deepEqual(
      found,
      orders.map(() => same),
    )
  },

  'a forward, a full mailbox, a policy, words without fields and delays suppress nobody': async ({
    store,
    newSender,
  }) => {
    const sender = await newSender()
    const findings: ReportFinding[] = [
      ...(['other', 'unknown'] satisfies Bounce['about'][]).map((about) => ({ ...bounced, about })),
      { ...bounced, permanent: false },
      ...failureCauses.filter((cause) => cause !== 'no_mailbox').map((cause) => ({ ...bounced, cause })),
      { kind: 'delayed', reply },
      { kind: 'not_spam' },
    ]
    const recipients = findings.map((_finding, n) => `r${n}@example.com`)
    const emails = await deliver(store, sender, recipients)
    for (const [n, finding] of findings.entries())
      assert.deepEqual(await report(store, emails[n], finding), { kind: 'none' })
    assert.deepEqual(await list(store), [])
    for (const to of recipients) assert.equal(await ask(store, sender, { to }), 'queued')
  },

  'a complaint suppresses invitations for a year, and other mail for a day': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    const [email] = await deliver(store, sender, [ada])
    await report(store, email, complained)
    assert.deepEqual(terms(await find(store, ada)), {
      ...{ destination: 'other', reason: 'complaint', strikes: 2, forMs: day, invitationsForMs: year },
    })
    const invite = { to: ada, type: 'organisation_invite' } as const
    assert.deepEqual(
      [await ask(store, sender, { to: ada }), await ask(store, sender, invite)],
      ['suppressed', 'suppressed'],
    )
    advance(day + clockMs)
    assert.equal(await ask(store, sender, { to: ada }), 'queued')
    assert.equal(await ask(store, sender, invite), 'suppressed')
    const [record] = await listEmails(store, { state: 'suppressed', limit: 1 })
    assert.deepEqual([record?.type, record?.reason], ['organisation_invite', 'complaint'])
    advance(year - day - 2 * clockMs)
    assert.equal(await ask(store, sender, invite), 'suppressed')
    advance(2 * clockMs)
    assert.equal(await ask(store, sender, invite), 'queued')
  },

  'a recipient who says that an email is no spam takes back the complaint, and nothing else': async ({
    store,
    newSender,
  }) => {
    const [sender, other] = [await newSender(), await newSender()]
    const eve = 'eve@example.com'
    const emails = await deliver(store, sender, [ada, bob, eve])
    const [byOther] = await deliver(store, other, [ada])
    await report(store, emails[0], complained)
    await report(store, byOther, complained)
    await report(store, emails[1], bounced)
    await suppress(store, sender, eve)
    for (const email of emails) assert.deepEqual(await report(store, email, { kind: 'not_spam' }), { kind: 'none' })
    const left = (await list(store)).map(({ app, reason }) => [app, reason])
    assert.deepEqual(left, [
      [sender.app.id, 'operator'],
      [sender.app.id, 'no_mailbox'],
      [other.app.id, 'complaint'],
    ])
    assert.equal(await ask(store, sender, { to: ada }), 'queued')
  },

  'a delivery to the mailbox ends what a bounce of another email began, of this app alone, and no complaint': async ({
    store,
    newSender,
  }) => {
    const [sender, other] = [await newSender(), await newSender()]
    const [gone, alive, annoyed] = await deliver(store, sender, [ada, ada, bob])
    const [byOther] = await deliver(store, other, [ada])
    for (const email of [gone, byOther]) await report(store, email, bounced)
    await report(store, annoyed, complained)
    const left = async () => (await list(store)).map(({ app, reason }) => [app, reason])
    for (const email of [gone, annoyed])
      assert.deepEqual(await report(store, email, { kind: 'confirmed' }), { kind: 'none' })
    assert.equal((await left()).length, 3, 'a server may bounce what it took')
    await report(store, alive, { kind: 'confirmed' })
    assert.deepEqual(await left(), [
      [sender.app.id, 'complaint'],
      [other.app.id, 'no_mailbox'],
    ])
    assert.equal(await ask(store, sender, { to: ada }), 'queued')
  },
}

/** Reports bounces, 20 a minute unless given; returns how many had which effect. */
async function countStrikes({ advance, store }: Subject, emails: readonly EmailId[], aMinute = 20) {
  const strikes: { kind: string }[] = []
  for (const email of emails) {
    strikes.push((await report(store, email, bounced)) ?? { kind: 'already' })
    advance(minuteMs / aMinute)
  }
  return kinds(strikes)
}

const some = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@example.com`)
type Counts = Readonly<Record<string, number>>
/** @param app null: of all apps */
const count = (store: Store, app: AppId | null, events: Counts, minutesAgo = 0) =>
  store.addActivity(
    Object.entries(events).map(([event, number]) => ({
      ...{ app, span: 1, event: event as ActivityEvent, count: number },
      minute: Math.floor(store.now() / minuteMs) - minutesAgo,
    })),
  )

/** As on the day when a large provider called its mailboxes missing: all within ten minutes. */
const refusedMany = 500

const massBounces: SharedCases = {
  'if all addresses of a provider are said to be gone, few are suppressed, for an hour': async (subject) => {
    const { store } = subject
    const sender = await subject.newSender()
    const emails: EmailId[] = []
    for (let n = 0; n < refusedMany / 100; n++)
      emails.push(
        ...(await deliver(
          store,
          sender,
          some(100).map((to) => `n${n}${to}`),
        )),
      )
    const [last, lastTo] = [emails[refusedMany - 1], `n${refusedMany / 100 - 1}r99@example.com`]
    assert.deepEqual(await countStrikes(subject, emails, refusedMany / 8), {
      suppressed: 20,
      massive: refusedMany - 20,
    })
    const found = await list(store)
    assert.deepEqual(new Set(found.map((each) => terms(each).forMs)), new Set([hour]))
    assert.equal(found.length, 20)
    assert.equal((await store.findEmail(last as EmailId))?.state, 'bounced', 'the record has the report')
    await report(store, last, complained)
    assert.deepEqual(await strikeRefused(store, last), { kind: 'massive' })
    assert.equal((await find(store, lastTo)).reason, 'complaint', 'a complaint strikes all the same')
    assert.equal(await clear(store, { apps: null, reason: 'no_mailbox' }), 20)
    assert.deepEqual(
      (await list(store)).map(({ reason }) => reason),
      ['complaint'],
    )
    assert.equal(await ask(store, sender, { to: 'n0r0@example.com' }), 'queued')
  },

  'strikes go on up to 30 % of the emails that ended in ten minutes': async (subject) => {
    const { advance, store } = subject
    const sender = await subject.newSender()
    const app = sender.app.id
    const emails = await deliver(store, sender, some(44))
    await count(store, app, {
      delivered: 90,
      'failed:refused_by_relay': 10,
      'took:more': 1000,
      expired: 1000,
    })
    await count(store, app, { delivered: 100_000, gone: 10 }, 11)
    assert.deepEqual(await countStrikes(subject, emails.slice(0, 32)), {
      suppressed: 30,
      massive: 2,
    })
    advance(11 * minuteMs)
    assert.equal((await report(store, emails[32], bounced))?.kind, 'suppressed')
    await count(store, app, { delivered: 100, gone: 30 })
    assert.equal((await report(store, emails[33], bounced))?.kind, 'massive', 'counts of all processes')
    await count(store, app, { delivered: 1 })
    assert.equal((await report(store, emails[34], bounced))?.kind, 'suppressed')
  },

  'the dead addresses of one app, or of three, protect none of another': async (subject) => {
    const { store } = subject
    const victim = await subject.newSender()
    const [dead] = await deliver(store, victim, ['dead@example.com'])
    for (const limit of [25, 25, 25]) {
      const emails = await deliver(store, await subject.newSender(), some(limit))
      assert.deepEqual(await countStrikes(subject, emails, 100), { suppressed: 20, massive: limit - 20 })
    }
    assert.equal((await report(store, dead, bounced))?.kind, 'suppressed')
  },

  'what four apps see at one destination is believed there no more, and elsewhere still': async (subject) => {
    const { store } = subject
    const victim = await subject.newSender()
    const emails = await deliver(store, victim, ['a@gmail.com', 'b@yahoo.com', 'c@gmail.com'])
    for (let apps = 0; apps < 4; apps++) {
      const sender = await subject.newSender()
      for (const email of await deliver(store, sender, some(6)))
        await report(store, email, bounced, { destination: 'gmail' })
    }
    const strikeOf = async (n: number, destination: Destination) =>
      (await report(store, emails[n], bounced, { destination }))?.kind
    assert.equal(await strikeOf(0, 'gmail'), 'massive')
    assert.equal(await strikeOf(1, 'yahoo'), 'suppressed')
    await count(store, null, { delivered: 1000 })
    assert.equal(await strikeOf(2, 'gmail'), 'suppressed', 'they are few of what ended')
  },
}

export function suppressions(it: It): void {
  it('suppressions', share({ ...strikes, ...massBounces, ...requests, ...lists }))
}
