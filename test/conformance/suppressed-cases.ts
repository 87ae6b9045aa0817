/** Conformance: requests for suppressed recipients, and the suppressions that operators list and change. */
import assert from 'node:assert/strict'
import { scanEveryMs } from '../../src/domain/bounds.ts'
import { minuteMs } from '../../src/domain/duration.ts'
import type { AppId, SuppressionId } from '../../src/domain/id.ts'
import type { SuppressionQuery, SuppressionRecord } from '../../src/store/report-store.ts'
import type { Store } from '../../src/store/store.ts'
import { deleteApp, listEmails, operator } from '../support/operator.ts'
import { claim, day, request, type Sender } from './subject.ts'
import {
  type Asked,
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
  nameOf,
  report,
  type SharedCases,
  suppress,
} from './suppression-subject.ts'

export const requests: SharedCases = {
  'a suppressed email has a record without content, is never claimed, and does not fill the queue': async ({
    store,
    newSender,
  }) => {
    const sender = await newSender()
    await suppress(store, sender, ada)
    const asked = [ada, bob, ada, 'eve@example.com'].map((to) => request(store, sender, { to }))
    const results = await Promise.all(asked.map((each) => store.enqueue(each)))
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ['suppressed', 'queued', 'suppressed', 'queued'],
    )
    const [first] = results
    assert.ok(first?.kind === 'suppressed')
    assert.deepEqual([first.appId, first.keyId], [sender.app.id, sender.keyId])
    const email = await store.findEmail(first.emailId)
    assert.ok(email)
    const { acceptedAt, app, attempts, finishedAt, key, reason, recipient, state, trail, type } = email
    assert.deepEqual(
      { app, attempts, key, reason, recipient, state, trail, type },
      {
        ...{ app: sender.app.id, attempts: 0, key: sender.keyId, reason: 'operator', state: 'suppressed' },
        ...{ recipient: nameOf(store, ada), trail: [], type: 'magic_link' },
      },
    )
    assert.equal(finishedAt, acceptedAt)
    assert.equal((await store.readQueueGauge()).depth, 2)
    const claimed = (await claim(store)).map(({ content }) => content.to)
    assert.deepEqual(claimed.toSorted(), [bob, 'eve@example.com'])
    assert.deepEqual((await store.readUsageToday(null)).get(sender.app.id), { accepted: 4, suppressed: 2 })
  },

  'limits, the daily count and idempotency hold for a suppressed recipient as for another': async ({
    store,
    newSender,
  }) => {
    const answers = []
    for (const to of [ada, bob]) {
      const sender = await newSender({ recipientPerHour: 2, daily: 4 })
      await suppress(store, sender, ada)
      const [first, replay] = [
        await store.enqueue(request(store, sender, { to, idem: 'k' })),
        await store.enqueue(request(store, sender, { to, idem: 'k' })),
      ]
      assert.ok(first.kind === (to === ada ? 'suppressed' : 'queued'))
      assert.ok(replay.kind === 'replayed' && replay.emailId === first.emailId)
      const more: Asked[] = [{ to, idem: 'k', body: 'other' }, { to }, { to }, {}, {}, { to }, {}]
      for (const each of more) {
        const kind = await ask(store, sender, each)
        answers.push(kind === 'suppressed' ? 'queued' : kind)
      }
    }
    const expected = [
      ...['idempotency_key_reused', 'queued', 'recipient_rate_limited', 'queued', 'queued'],
      ...['recipient_rate_limited', 'daily_limit_reached'],
    ]
    assert.deepEqual(answers, [...expected, ...expected])
  },

  'a full queue takes no email for a suppressed recipient either': async ({ store, reopen, newSender }) => {
    const sender = await newSender()
    await suppress(store, sender, ada)
    const small = await reopen({ queueMax: 2 })
    const kinds = []
    for (const more of [{}, { to: ada }, {}, { to: ada }]) kinds.push(await ask(small, sender, more))
    assert.deepEqual(kinds, ['queued', 'suppressed', 'queued', 'queue_full'])
  },

  'a suppression is of one address and one app, or of all apps': async ({ store, advance, newSender }) => {
    const [acme, other] = [await newSender(), await newSender()]
    await suppress(store, acme, ada)
    assert.equal(await ask(store, acme, { to: 'Ada@Example.com' }), 'suppressed', 'an address has no case')
    assert.equal(await ask(store, acme, { to: 'adam@example.com' }), 'queued')
    assert.equal(await ask(store, other, { to: ada }), 'queued')
    await suppress(store, null, bob)
    assert.equal(await ask(store, acme, { to: bob }), 'suppressed')
    assert.equal(await ask(store, other, { to: bob, type: 'organisation_invite' }), 'suppressed')
    advance(day + clockMs)
    for (const sender of [acme, other])
      for (const to of [ada, bob]) assert.equal(await ask(store, sender, { to }), 'queued')
  },

  'the record names the reason that holds now, that of all apps first': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    await report(store, (await deliver(store, sender, [ada]))[0], complained)
    const type = 'organisation_invite'
    const reasonOf = async () => {
      assert.equal(await ask(store, sender, { to: ada, type }), 'suppressed')
      return (await listEmails(store, { state: 'suppressed', limit: 1 }))[0]?.reason
    }
    for (const forMs of [hour, 2 * day]) {
      await suppress(store, null, ada, forMs)
      assert.equal(await reasonOf(), 'operator')
      advance(forMs + clockMs)
      assert.equal(await reasonOf(), 'complaint')
    }
  },
}

/** Suppressions that differ in one property each: their ids by a letter. */
const fill = async (store: Store, advance: (ms: number) => void, [one, two]: readonly Sender[]) => {
  assert.ok(one && two)
  const emails = [
    ...(await deliver(store, one, ['a@x.org', 'b@x.org', 'c@x.org', 'd@x.org'])),
    ...(await deliver(store, two, ['a@x.org'])),
  ]
  await report(store, emails[0], bounced, { destination: 'gmail' })
  await report(store, emails[1], complained, { destination: 'gmail' })
  await report(store, emails[2], bounced, { destination: 'yahoo' })
  await report(store, emails[4], bounced, { destination: 'gmail' })
  await suppress(store, null, 'a@x.org')
  advance(10 * minuteMs)
  const since = store.now() - clockMs
  await report(store, emails[3], bounced, { destination: 'gmail' })
  advance(clockMs)
  const found = await list(store)
  assert.equal(found.length, 6)
  const letterOf = ({ email }: SuppressionRecord) => (email === null ? 'x' : 'abcdA'.charAt(emails.indexOf(email)))
  const ids = Object.fromEntries(found.map((each) => [letterOf(each), each.id]))
  return { since, ids }
}

export const lists: SharedCases = {
  'lists and clearing choose by app, reason, destination and time': async ({ store, advance, newSender }) => {
    const many = { recipientPerHour: 1000 }
    const senders = [await newSender(many), await newSender(many)]
    const [one, two] = senders.map(({ app }) => app.id)
    assert.ok(one && two)
    const cases: [(since: number) => SuppressionQuery, string][] = [
      [() => ({ apps: null }), 'abcAxd'],
      [() => ({ apps: null, allApps: false }), 'abcAd'],
      [() => ({ apps: [one] }), 'abcd'],
      [() => ({ apps: [two] }), 'A'],
      [() => ({ apps: [two, one] }), 'abcAd'],
      [() => ({ apps: [] }), ''],
      [() => ({ apps: null, reason: 'no_mailbox' }), 'acAd'],
      [() => ({ apps: null, reason: 'complaint' }), 'b'],
      [() => ({ apps: null, reason: 'operator' }), 'x'],
      [() => ({ apps: null, destination: 'gmail' }), 'abAd'],
      [() => ({ apps: [one], destination: 'yahoo' }), 'c'],
      [(since) => ({ apps: null, since }), 'd'],
      [(since) => ({ apps: null, until: since }), 'abcAx'],
      [(since) => ({ apps: [one], reason: 'no_mailbox', until: since, destination: 'gmail' }), 'a'],
      [(since) => ({ apps: null, since, until: since }), ''],
    ]
    for (const [queryOf, letters] of cases) {
      const { since, ids } = await fill(store, advance, senders)
      const query = queryOf(since)
      const lettersOf = (items: readonly SuppressionRecord[]) =>
        [...'abcAxd'].filter((letter) => items.some(({ id }) => id === ids[letter])).join('')
      const message = JSON.stringify(query)
      const found = async (...apps: (readonly (AppId | null)[])[]) =>
        lettersOf(await store.findSuppressions(nameOf(store, 'a@x.org'), ...apps))
      assert.deepEqual(
        [await found(), await found([two, null]), await found([one]), await found([])],
        ['aAx', 'Ax', 'a', ''],
      )
      assert.equal(lettersOf(await list(store, query)), letters, message)
      assert.equal(await clear(store, query), letters.length, message)
      const rest = [...'abcAxd'].filter((letter) => !letters.includes(letter)).join('')
      assert.equal(lettersOf(await list(store)), rest, message)
      await clear(store)
    }
  },

  'a list has pages, newest first, without those that have ended': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    await suppress(store, sender, 'ended@x.org', 1000)
    advance(1000 + clockMs)
    const made = []
    for (const n of [1, 2, 3, 4, 5]) {
      made.unshift(await suppress(store, sender, `r${n}@x.org`))
      advance(clockMs)
    }
    const pages: SuppressionRecord[][] = []
    let before: SuppressionId | null = null
    do {
      const page: Awaited<ReturnType<Store['listSuppressions']>> = await store.listSuppressions({
        ...{ apps: [sender.app.id], limit: 2 },
        ...(before && { before }),
      })
      pages.push([...page.items])
      before = page.next
    } while (before !== null)
    assert.deepEqual(pages.flat(), made)
    assert.deepEqual(pages.map(({ length }) => length).slice(0, 3), [2, 2, 1])
    assert.deepEqual(await store.findSuppression(made[0]?.id as SuppressionId), made[0])
  },

  'an operator suppresses, for no shorter time than before, and removes; both are in the audit': async ({
    store,
    newSender,
  }) => {
    const sender = await newSender()
    const set = await suppress(store, sender, ada, 3 * day)
    const { app, destination, email, reason, reply: said, strikes } = set
    assert.deepEqual(
      [app, destination, email, reason, said, strikes],
      [...[sender.app.id, 'other', null, 'operator', null, 0]],
    )
    const again = await suppress(store, sender, ada, day)
    assert.deepEqual([again.id, again.until], [set.id, set.until])
    assert.deepEqual(await store.removeSuppression(set.id, operator), again)
    assert.equal(await store.removeSuppression(set.id, operator), null)
    assert.equal(await store.findSuppression(set.id), null)
    assert.equal(await ask(store, sender, { to: ada }), 'queued')
    const facts = { reason: 'operator', until: new Date(set.until).toISOString() }
    const { items } = await store.listAudit({ app: sender.app.id, limit: 10 })
    assert.deepEqual(
      items.slice(0, 3).map(({ action, after, before, target }) => ({ action, after, before, target })),
      [
        { action: 'suppression.remove', before: facts, after: null, target: set.id },
        { action: 'suppression.add', before: null, after: facts, target: set.id },
        { action: 'suppression.add', before: null, after: facts, target: set.id },
      ],
    )
  },

  'with an app its suppressions go, and no report makes others': async ({ store, newSender }) => {
    const [acme, other] = [await newSender(), await newSender()]
    const [first, second] = await deliver(store, acme, [ada, bob])
    await report(store, first, bounced)
    const kept = [await suppress(store, other, ada), await suppress(store, null, ada)]
    await deleteApp(store, acme.app.id)
    assert.deepEqual(await report(store, second, bounced), { kind: 'none' })
    while ((await store.maintain()).more);
    const ids = (items: readonly SuppressionRecord[]) => items.map(({ id }) => id).toSorted()
    assert.deepEqual(ids(await list(store)), ids(kept))
    const set = { app: acme.app.id, recipient: nameOf(store, ada), destination: 'other', until: 0 } as const
    assert.equal(await store.setSuppression(set, operator), null)
  },

  'maintenance removes a suppression once its strikes are forgotten': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    const [first, second] = await deliver(store, sender, [ada, bob])
    await report(store, first, bounced)
    await report(store, second, complained)
    const { id } = await find(store, ada)
    const { id: complaint } = await find(store, bob)
    const maintain = async () => {
      while ((await store.maintain()).more);
    }
    advance(hour + 90 * day - 2 * scanEveryMs) // old records are looked for every ten minutes
    await maintain()
    assert.equal((await store.findSuppression(id))?.strikes, 1)
    advance(3 * scanEveryMs)
    await maintain()
    assert.equal(await store.findSuppression(id), null)
    assert.equal((await store.findSuppression(complaint))?.strikes, 2)
  },

  'reports and operators that change the same suppression at once do not fail': async ({
    store,
    reopen,
    newSender,
  }) => {
    const sender = await newSender({ recipientPerHour: 1000 })
    const other = await reopen()
    const emails = await deliver(store, sender, Array<string>(45).fill(ada))
    const reportSome = async (on: Store, from: number) => {
      for (const email of emails.slice(from, from + 15)) await report(on, email, complained)
    }
    const lanes = [reportSome(store, 0), reportSome(store, 15), reportSome(other, 30)]
    let isReporting = true
    const reported = Promise.all(lanes).finally(() => {
      isReporting = false
    })
    while (isReporting) await clear(other)
    await reported
    await clear(store)
    assert.deepEqual(await list(store), [])
  },
}
