/** Conformance: webhooks, from the event to the end of the last try. */
import assert from 'node:assert/strict'
import {
  keepDays,
  scanEveryMs,
  waitingWebhooksMax,
  webhookDays,
  webhookLeaseMs,
  webhookTrailMax,
} from '../../src/domain/bounds.ts'
import { type AppId, type EmailId, newId, type WebhookMessageId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import {
  makeWebhookSecret,
  openRecipient,
  openWebhookSecret,
  recipientSealer,
  resealReceivers,
  sealWebhookSecret,
} from '../../src/store/crypto/webhook-secret.ts'
import type { Store } from '../../src/store/store.ts'
import type { NewWebhookMessage, ReceiverRecord } from '../../src/store/webhook-store.ts'
import { deleteApp, operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { day, type It, newSender, type Sender, testRing, updateApp } from './subject.ts'
import { bounced, clockMs, complained, deliver, nameOf, report, suppress } from './suppression-subject.ts'

const webhookUrl = 'https://app.acme.test/postern'

/** An app that is sent webhooks. */
async function newReceiver(store: Store, slug: string): Promise<Sender> {
  const sender = await newSender(store, slug)
  const { id, settings } = sender.app
  const app = await updateApp(store, id, { settings: { ...settings, webhookUrl } })
  await setSecret(store, id)
  return { ...sender, app }
}

async function setSecret(store: Store, app: AppId, secret = makeWebhookSecret()) {
  const sealed = sealWebhookSecret(testRing(store), app, secret)
  const set = await store.setWebhookSecret({ app, sealed, oldUntil: store.now() + day }, operator)
  assert.ok(set)
  return set
}

const failed = (app: AppId, email = newId('em', Date.now())): NewWebhookMessage => ({
  ...{ app, email, event: 'email.failed', facts: { emailType: 'magic_link' } },
  sealed: 'sealed',
})

const dueApps = async (store: Store) => (await store.listDueWebhooks()).map(({ app }) => app)

export function webhooks(it: It): void {
  it('a bounce and a complaint leave a message, once, with the sealed recipient', async (_t, { store, advance }) => {
    const { app, ...sender } = await newReceiver(store, 'acme')
    const to = 'ada@example.com' as EmailAddress
    const [one, two] = (await deliver(store, { app, ...sender }, [to, 'bob@example.com'])) as EmailId[]
    assert.ok(one && two)
    const sealedTo = recipientSealer(testRing(store))(one, to)
    await suppress(store, await newSender(store, 'other'), to, 30 * day)
    for (let n = 0; n < 2; n++)
      await store.recordReport({
        email: one,
        source: 'mail',
        finding: bounced,
        destination: 'other',
        sealedTo,
      })
    await report(store, two, complained)
    await report(store, two, { kind: 'not_spam' })
    advance(clockMs)
    const [webhook] = await store.listDueWebhooks()
    assert.deepEqual([webhook?.app, webhook?.url], [app.id, webhookUrl])
    const [first, second, ...others] = await store.claimWebhooks(app.id, 10)
    assert.ok(first && second && others.length === 0)
    const { suppressedUntil, ...facts } = first.facts
    assert.deepEqual(facts, { emailType: 'magic_link', cause: 'no_mailbox', permanent: true })
    const [own] = await store.findSuppressions(nameOf(store, to), [app.id])
    assert.equal(Date.parse(`${suppressedUntil}`), own?.until, 'and not until when another app does')
    assert.deepEqual([first.event, first.email, first.tries], ['email.bounced', one, 1])
    assert.equal(first.sealed && openRecipient(testRing(store), one, first.sealed), to)
    assert.deepEqual([second.event, second.email, second.sealed], ['email.complained', two, null])
  })

  it('an app without an address or a secret is sent nothing, nor another app', async (_t, { store }) => {
    const [none, acme, secretless] = [
      await newSender(store, 'none'),
      await newReceiver(store, 'acme'),
      await newSender(store, 'secretless'),
    ]
    await setSecret(store, none.app.id)
    const settings = { ...secretless.app.settings, webhookUrl }
    await updateApp(store, secretless.app.id, { settings })
    const added = []
    for (const { app } of [none, secretless, acme]) added.push(await store.addWebhookMessage(failed(app.id)))
    assert.deepEqual(added.slice(0, 2), ['unwanted', 'unwanted'])
    assert.match(`${added[2]}`, /^wh_/)
    assert.deepEqual(await dueApps(store), [acme.app.id])
    assert.deepEqual(await store.claimWebhooks(none.app.id, 10), [])
    await updateApp(store, acme.app.id, { settings: secretless.app.settings })
    assert.deepEqual((await store.listDueWebhooks())[0]?.url, null, 'an address that was removed')
  })

  it('a claim leases the oldest that are due, for a while; only its own end counts', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    const emails: EmailId[] = []
    for (let n = 0; n < 3; n++) {
      const email = newId('em', store.now())
      emails.push(email)
      assert.match(await store.addWebhookMessage(failed(app.id, email)), /^wh_/)
      advance(1000)
    }
    const [first, second] = await store.claimWebhooks(app.id, 2)
    assert.deepEqual([first?.email, second?.email], emails.slice(0, 2))
    assert.deepEqual(
      (await store.claimWebhooks(app.id, 2)).map(({ email }) => email),
      emails.slice(2),
    )
    assert.deepEqual(await store.claimWebhooks(app.id, 2), [])
    assert.deepEqual(await dueApps(store), [])
    assert.ok(first && second)
    await store.endWebhookTry({ ...first, result: '204', receiver: 'accepts', waitMs: null })
    await store.endWebhookTry({ ...second, result: '500', receiver: 'fails', waitMs: 5000 })
    advance(5000 + clockMs)
    const [again] = await store.claimWebhooks(app.id, 10)
    assert.deepEqual([again?.id, again?.tries], [second.id, 2])
    await store.endWebhookTry({ ...second, result: '204', receiver: 'accepts', waitMs: null }) // too late
    assert.equal((await store.findReceiver(app.id))?.result, '500')
    const states = (await store.listWebhookMessages(app.id, 10)).map(({ dueAt, result, tries }) => [
      ...[dueAt !== null, result, tries],
    ])
    assert.deepEqual(states, [
      [true, null, 1],
      [true, '500', 2],
      [false, '204', 1],
    ])
    assert.deepEqual(
      (await store.findWebhookMessage(app.id, second.id))?.trail.map(({ result }) => result),
      ['500'],
      'a lost lease leaves no try',
    )
    assert.equal((await store.listWebhookMessages(app.id, 1)).length, 1)
    advance(webhookLeaseMs + clockMs)
    assert.equal((await store.claimWebhooks(app.id, 10)).length, 2, 'the sender died')
  })

  it('once a receiver accepts a message again, all that wait are due, but not those under way', async (_t, it) => {
    const { store, advance } = it
    const { app } = await newReceiver(store, 'acme')
    const other = await newReceiver(store, 'other')
    for (const id of [app.id, app.id, app.id, app.id, other.app.id]) await store.addWebhookMessage(failed(id))
    advance(clockMs)
    const halfHour = { result: '500', receiver: 'fails', waitMs: 1_800_000 } as const
    const [first, second, third, fourth] = await store.claimWebhooks(app.id, 4)
    const [elsewhere] = await store.claimWebhooks(other.app.id, 1)
    assert.ok(first && second && third && fourth && elsewhere)
    for (const message of [first, second, elsewhere]) await store.endWebhookTry({ ...message, ...halfHour })
    assert.deepEqual(await store.claimWebhooks(app.id, 9), [])
    await store.endWebhookTry({ ...third, result: '204', receiver: 'accepts', waitMs: null })
    advance(clockMs)
    assert.deepEqual(
      (await store.claimWebhooks(app.id, 9)).map(({ id }) => id).toSorted(),
      [first.id, second.id].toSorted(),
    )
    assert.deepEqual(await store.claimWebhooks(other.app.id, 9), [])
  })

  it('a message keeps its last tries', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    const id = await store.addWebhookMessage(failed(app.id))
    for (let n = 0; n < webhookTrailMax + 2; n++) {
      advance(clockMs)
      const [claimed] = await store.claimWebhooks(app.id, 1)
      assert.ok(claimed)
      await store.endWebhookTry({ ...claimed, result: `5${10 + n}`, receiver: 'fails', waitMs: 0 })
    }
    const { trail = [] } = (await store.findWebhookMessage(app.id, id as WebhookMessageId)) ?? {}
    assert.deepEqual([trail.length, trail[0]?.result, trail.at(-1)?.result], [webhookTrailMax, '512', '531'])
    assert.ok((trail[0]?.at ?? 0) <= (trail.at(-1)?.at ?? 0))
  })

  it('a message is sent again at once, with its recipient unless it was accepted', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    const other = await newReceiver(store, 'other')
    for (let n = 0; n < 2; n++) await store.addWebhookMessage(failed(app.id))
    advance(clockMs)
    const [first, second] = await store.claimWebhooks(app.id, 2)
    assert.ok(first && second)
    await store.endWebhookTry({ ...first, result: '204', receiver: 'accepts', waitMs: null })
    const response = 'no such user'
    await store.endWebhookTry({ ...second, result: '500', response, receiver: 'fails', waitMs: null })
    const find = (id: WebhookMessageId) => store.findWebhookMessage(app.id, id)
    assert.deepEqual([(await find(first.id))?.keepsRecipient, (await find(second.id))?.keepsRecipient], [false, true])
    assert.equal((await find(second.id))?.response, response)
    assert.equal(await store.sendWebhookAgain(other.app.id, second.id), 'not_found')
    assert.equal(await store.sendWebhookAgain(app.id, newId('wh', 0)), 'not_found')
    assert.equal(await store.findWebhookMessage(other.app.id, second.id), null)
    assert.deepEqual(await store.listDueWebhooks(), [])
    await store.addWebhookMessage(failed(app.id))
    assert.equal(await store.sendWebhookAgain(app.id, second.id), 'done')
    assert.equal((await store.listDueWebhooks())[0]?.isUrgent, true)
    const [again] = await store.claimWebhooks(app.id, 1)
    assert.deepEqual(
      [again?.id, again?.tries, again?.sealed],
      [second.id, 2, 'sealed'],
      'before those that wait longer',
    )
    assert.equal((await store.listDueWebhooks())[0]?.isUrgent, false)
    assert.deepEqual([(await find(second.id))?.result, (await find(second.id))?.response], [null, null])
    assert.ok(again)
    await store.endWebhookTry({ ...again, result: '500', receiver: 'fails', waitMs: null })
    advance(webhookDays * day + clockMs)
    while ((await store.maintain()).more);
    assert.equal((await find(second.id))?.keepsRecipient, false, 'no recipient is kept for longer')
  })

  it('the record says since when a receiver fails, and forgets it with a success', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    const end = async (isTaken: boolean, result: string) => {
      await store.addWebhookMessage(failed(app.id))
      advance(clockMs)
      const [claimed] = await store.claimWebhooks(app.id, 1)
      assert.ok(claimed)
      await store.endWebhookTry({ ...claimed, result, receiver: isTaken ? 'accepts' : 'fails', waitMs: null })
      return store.findReceiver(app.id)
    }
    const since = (await end(false, '500'))?.failingSince
    assert.ok(since)
    const second = await end(false, 'no answer')
    assert.deepEqual([second?.failingSince, second?.result], [since, 'no answer'])
    const third = await end(true, '200')
    assert.deepEqual([third?.failingSince, third?.result], [null, '200'])
    const [listed] = await store.listReceivers()
    assert.deepEqual(listed, third)
  })

  it('the recipient goes with the end of a message, or after three days, and the record after thirty', async (_t, {
    store,
    advance,
  }) => {
    const { app } = await newReceiver(store, 'acme')
    for (let n = 0; n < 2; n++) await store.addWebhookMessage(failed(app.id))
    advance(clockMs)
    const [claimed] = await store.claimWebhooks(app.id, 1)
    assert.ok(claimed?.sealed)
    await store.endWebhookTry({ ...claimed, result: '500', receiver: 'fails', waitMs: day })
    const maintain = async () => {
      while ((await store.maintain()).more);
    }
    advance(webhookDays * day - 2 * scanEveryMs)
    await maintain()
    const waiting = async () =>
      (await store.listWebhookMessages(app.id, 10)).filter(({ dueAt }) => dueAt !== null).length
    assert.equal(await waiting(), 2)
    advance(3 * scanEveryMs)
    await maintain()
    assert.equal(await waiting(), 0)
    const results = (await store.listWebhookMessages(app.id, 10)).map(({ result }) => result)
    assert.deepEqual(results, ['not tried', '500'])
    advance((keepDays - webhookDays) * day)
    await maintain()
    assert.deepEqual(await store.listWebhookMessages(app.id, 10), [])
  })

  it('secrets that are replaced sign until their times are over; all are sealed anew for another ring', async (_t, {
    store,
    advance,
    reopen,
  }) => {
    const { app } = await newSender(store, 'acme')
    const ring = testRing(store)
    assert.equal(await store.findReceiver(app.id), null)
    const [one, two, three] = [makeWebhookSecret(), makeWebhookSecret(), makeWebhookSecret()]
    assert.deepEqual((await setSecret(store, app.id, one)).old, [])
    await setSecret(store, app.id, two)
    advance(1000)
    const set = await setSecret(store, app.id, three)
    const open = (ofRing: typeof ring, sealed: string) => openWebhookSecret(ofRing, app.id, sealed)
    const openAll = (ofRing: typeof ring, { old, sealed }: ReceiverRecord) =>
      [sealed, ...old.map((each) => each.sealed)].map((each) => open(ofRing, each))
    assert.deepEqual(openAll(ring, set), [three, two, one])
    assert.deepEqual(
      set.old.map(({ until }) => until - store.now() > day - clockMs),
      [true, true],
    )
    assert.ok((set.old[0]?.until ?? 0) > (set.old[1]?.until ?? 0), 'each has its own time')
    assert.equal(openWebhookSecret(ring, newId('app', 0), set.sealed), null, 'sealed for its app')
    const next = newRing('next')
    const both: typeof ring = [next[0], ...ring]
    const other = await reopen({ ring: both })
    try {
      assert.deepEqual(await resealReceivers(next, other), [set])
      const change = { ...set, sealed: 'read before somebody replaced it' }
      await other.resealReceiver(change, { sealed: 'sealed anew', old: [] })
      assert.deepEqual(await other.findReceiver(app.id), set)
      assert.deepEqual(await resealReceivers(both, other), [])
      const resealed = await other.findReceiver(app.id)
      assert.ok(resealed)
      assert.deepEqual(openAll(next, resealed), [three, two, one])
    } finally {
      await other.close()
    }
    advance(day)
    assert.equal((await setSecret(store, app.id)).old.length, 1, 'those whose time is over go')
    for (let n = 0; n < 5; n++) await setSecret(store, app.id)
    assert.equal((await store.findReceiver(app.id))?.old.length, 4)
    const last = await store.setWebhookSecret({ app: app.id, sealed: 'x', oldUntil: store.now() }, operator)
    assert.deepEqual(last?.old, [], 'at once')
    const { items } = await store.listAudit({ limit: 10 })
    assert.equal(items.filter(({ action }) => action === 'webhook.secret').length, 10)
  })

  it('so many wait, and no more; a deleted app leaves nothing', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    const add = () => store.addWebhookMessage(failed(app.id))
    for (let n = 0; n < waitingWebhooksMax; n += 100) {
      const added = await Promise.all(Array.from({ length: 100 }, add))
      assert.ok(added.every((id) => id.startsWith('wh_')))
    }
    assert.equal(await add(), 'full')
    advance(clockMs)
    const [claimed] = await store.claimWebhooks(app.id, 1)
    assert.ok(claimed)
    await store.endWebhookTry({ ...claimed, result: '204', receiver: 'accepts', waitMs: null })
    assert.match(await add(), /^wh_/, 'those that were sent do not count')
    await deleteApp(store, app.id)
    assert.deepEqual([await dueApps(store), await store.listReceivers()], [[], []])
    while ((await store.maintain()).more);
    assert.deepEqual(await store.listWebhookMessages(app.id, 10), [])
  })

  // Last, because it makes ids of the next year, which all later ids of this process follow.
  it('a clock that is set back delays no message', async (_t, { store, advance }) => {
    const { app } = await newReceiver(store, 'acme')
    advance(365 * day)
    await store.addWebhookMessage(failed(app.id))
    advance(clockMs)
    const [claimed] = await store.claimWebhooks(app.id, 1)
    assert.ok(claimed)
    await store.endWebhookTry({ ...claimed, result: '500', receiver: 'fails', waitMs: 5000 })
    assert.deepEqual(await dueApps(store), [])
    advance(-365 * day)
    assert.deepEqual(await dueApps(store), [app.id])
    assert.equal((await store.claimWebhooks(app.id, 10)).length, 1)
    assert.deepEqual(await store.claimWebhooks(app.id, 10), [], 'once')
  })
}
