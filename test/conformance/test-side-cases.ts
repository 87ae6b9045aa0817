/** Conformance: test keys, the side of an app that they send for, and their inbox. */
import assert from 'node:assert/strict'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { simulatedTransport, testSide } from '../../src/domain/app/test-side.ts'
import { inboxMax, inboxMs, waitingWebhooksMax } from '../../src/domain/bounds.ts'
import { noReply } from '../../src/domain/delivery/reply.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { WebhookFacts } from '../../src/domain/webhooks/webhook.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { claim, delivered, type It, newKey, newSender, request, type Sender, updateApp } from './subject.ts'

/** An app with a key, and the same app with a test key. */
async function newSides(store: Store, slug = 'acme'): Promise<{ readonly real: Sender; readonly tests: Sender }> {
  const real = await newSender(store, slug)
  const keyHash = hashDeliveryKey(newDeliveryKey())
  const key = await newKey(store, { app: real.app.id, isTest: true, hash: keyHash, name: 'ci', expiresAt: null })
  return { real, tests: { app: real.app, keyHash, keyId: key.id } }
}

const to = 'delivered@postern.test'
const claimTests = (store: Store, max = 10) =>
  store.claimDue({ transport: simulatedTransport, max, perApp: 1000, leases: [] })

export function testSides(it: It): void {
  it('a test key is a key of its app, which is listed once', async (_t, { store }) => {
    const { real, tests } = await newSides(store)
    const { id } = real.app
    const keys = await store.listKeys(id)
    assert.deepEqual(
      keys.map((key) => [key.id, key.app, key.isTest]),
      [
        [real.keyId, id, false],
        [tests.keyId, id, true],
      ],
    )
    const taken = { app: id, hash: hashDeliveryKey(newDeliveryKey()), name: 'ci', expiresAt: null }
    assert.equal(await store.createKey(taken, operator), 'name_taken')
    assert.deepEqual(
      (await store.listApps()).map((app) => app.id),
      [id],
    )
    for (const name of [testSide(id), 'test:acme']) assert.equal(await store.findApp(name), null)
    assert.equal(await store.findAppBySlug('test:acme'), null)
    const replaced = await store.replaceKey(
      tests.keyId,
      { hash: hashDeliveryKey(newDeliveryKey()), expiresAt: null, oldExpiresAt: store.now() },
      operator,
    )
    assert.ok(replaced !== null && typeof replaced === 'object' && replaced.isTest)
    await store.updateKey(replaced.id, { expiresAt: store.now() + 1000 }, operator)
    assert.deepEqual(await store.listExpiringKeys(store.now() + 2000), [], 'without an alert')
  })

  it('mail of a test key is claimed for the simulated relay alone, and counts for its own side', async (_t, {
    store,
  }) => {
    const { real, tests } = await newSides(store)
    const ids = [
      (await store.enqueue(request(store, tests, { to }))).kind,
      (await store.enqueue(request(store, real, { to: 'a@example.com' }))).kind,
    ]
    assert.deepEqual(ids, ['queued', 'queued'])
    const ofService = await store.claimDue({ transport: null, max: 10, perApp: 1000, leases: [] })
    assert.deepEqual(
      [ofService.claims.map(({ appId }) => appId), ofService.elsewhere],
      [[real.app.id], [simulatedTransport]],
    )
    const waiting = await store.summariseQueue()
    assert.deepEqual(
      waiting.counts.map(({ app }) => app),
      [real.app.id],
    )
    assert.deepEqual((await store.measureQueue()).states, { queued: 0, sending: 1, deferred: 0, held: 0 })
    const [first] = (await claimTests(store)).claims
    assert.ok(first)
    assert.equal(first.appId, testSide(real.app.id))
    const reply = noReply('simulated')
    const bounced = { kind: 'simulated', state: 'bounced', reason: 'no_mailbox', reply, relay: 'simulated' } as const
    assert.equal(await store.recordOutcome(first, bounced), true)
    const found = await store.findEmail(first.emailId)
    assert.deepEqual(
      [found?.state, found?.reason, found?.app, found?.isTest],
      ['bounced', 'no_mailbox', real.app.id, true],
    )
    assert.equal(found?.trail.at(-1)?.outcome, 'bounced')
    const list = async (query: object) =>
      (await store.listEmails({ limit: 10, ...query })).items.map(({ isTest }) => isTest)
    assert.deepEqual(await list({}), [false])
    assert.deepEqual(await list({ tests: true }), [true])
    assert.deepEqual(await list({ app: real.app.id }), [false])
    assert.deepEqual(await list({ app: real.app.id, tests: true }), [true])
    const recipient = store.nameRecipient(to as EmailAddress)
    for (const query of [{ recipient }, { recipient, app: real.app.id }, { key: tests.keyId, app: real.app.id }])
      assert.deepEqual(await list(query), [true])
    const accepted = { accepted: 1 }
    assert.deepEqual((await store.readUsage(real.app.id))[0]?.counts, accepted)
    assert.deepEqual([...(await store.readUsageToday(null))], [[real.app.id, accepted]])
  })

  it('each tag of a test recipient has a limit of its own', async (_t, { store }) => {
    const { real, tests } = await newSides(store)
    const limits = { ...real.app.settings.limits, recipientPerHour: 1 }
    const app = await updateApp(store, real.app.id, { settings: { ...real.app.settings, limits } })
    const ask = async (tag: string) =>
      (await store.enqueue(request(store, { ...tests, app }, { to: `delivered+${tag}@postern.test` }))).kind
    for (let n = 0; n < 10; n++) assert.equal(await ask(`t${n}`), 'queued')
    assert.equal(await ask('t0'), 'recipient_rate_limited')
  })

  it('a change of an app holds for both of its sides', async (_t, { store }) => {
    const { real, tests } = await newSides(store)
    const app = await updateApp(store, real.app.id, { settings: { ...real.app.settings, name: 'Other' } })
    const again = await store.enqueue(request(store, tests, { to }))
    assert.ok(again.kind === 'judge_again')
    assert.deepEqual([again.app.settings.name, again.app.version, again.app.slug], ['Other', app.version, 'acme'])
    const changed = { ...tests, app }
    assert.equal((await store.enqueue(request(store, changed, { to }))).kind, 'queued')
    const disabled = await updateApp(store, app.id, { status: 'disabled' })
    assert.equal((await store.enqueue(request(store, { ...tests, app: disabled }, { to }))).kind, 'invalid_key')
    assert.deepEqual((await claimTests(store)).claims, [])
    assert.equal(await store.deleteApp(app.id, operator), 'deleted')
    assert.equal(await store.findKey(tests.keyId), null)
    await store.maintain()
    const { items } = await store.listEmails({ tests: true, limit: 10 })
    assert.deepEqual(
      items.map(({ state }) => state),
      ['cancelled'],
    )
    const made = await newSides(store) // with the same slug
    assert.equal((await store.enqueue(request(store, made.tests, { to }))).kind, 'queued')
  })

  it('an email is kept in the inbox once, while it is sent, for an hour', async (_t, { advance, store }) => {
    const { real, tests } = await newSides(store)
    for (const tag of ['a', 'b']) await store.enqueue(request(store, tests, { to: `delivered+${tag}@postern.test` }))
    const [first, second] = (await claimTests(store)).claims
    assert.ok(first && second)
    for (const { emailId: id } of [first, first, second]) await store.keepInboxEmail({ id, sealed: `sealed ${id}` })
    const list = async (query: object = {}) =>
      (await store.listInbox({ app: real.app.id, order: 'oldest', limit: 10, ...query })).map(({ id }) => id)
    assert.deepEqual(await list(), [first.emailId, second.emailId])
    assert.deepEqual(await list({ order: 'newest', limit: 1 }), [second.emailId])
    const recipient = store.nameRecipient(second.content.to)
    assert.deepEqual(await list({ recipient }), [second.emailId])
    assert.deepEqual(await list({ type: 'password_reset' }), [])
    await store.keepInboxEmail({ id: first.emailId, sealed: 'another attempt' })
    const [kept] = await store.listInbox({ app: real.app.id, order: 'oldest', limit: 1 })
    assert.equal(kept?.sealed, `sealed ${first.emailId}`)
    assert.ok(kept)
    assert.deepEqual(await list({ after: kept.seq }), [second.emailId])
    assert.deepEqual(await list({ since: kept.at }), [first.emailId, second.emailId])
    assert.deepEqual(await list({ since: store.now() + 1000 }), [])
    const other = await newSides(store, 'other')
    assert.deepEqual(await store.listInbox({ app: other.real.app.id, order: 'oldest', limit: 10 }), [])
    await store.recordOutcome(first, delivered)
    await store.keepInboxEmail({ id: first.emailId, sealed: 'again' })
    assert.equal((await list()).length, 2)
    advance(inboxMs)
    assert.deepEqual(await list(), [])
    while ((await store.maintain()).more) {}
    advance(-inboxMs)
    assert.deepEqual(await list(), [], 'they are deleted')
  })

  it('webhooks about test mail leave room for those about real mail', async (_t, { store }) => {
    const { real } = await newSides(store)
    const { id, settings } = real.app
    await updateApp(store, id, { settings: { ...settings, webhookUrl: 'https://app.acme.test/hook' } })
    await store.setWebhookSecret({ app: id, sealed: '', oldUntil: 0 }, operator)
    const add = (facts: WebhookFacts) =>
      store.addWebhookMessage({ app: id, event: 'email.bounced', email: null, facts, sealed: null })
    for (let n = 0; n < waitingWebhooksMax / 10; n++) assert.notEqual(await add({ test: true }), 'full')
    assert.equal(await add({ test: true }), 'full')
    assert.notEqual(await add({}), 'full')
  })

  it('the inbox of an app keeps its newest emails', async (_t, { store }) => {
    const { real, tests } = await newSides(store)
    const limits = { keyPerMinute: 10_000, recipientPerHour: 10_000, daily: 10_000 }
    const app = await updateApp(store, real.app.id, { settings: { ...real.app.settings, limits } })
    const requests = Array.from({ length: inboxMax + 2 }, () =>
      store.enqueue(request(store, { ...tests, app }, { to })),
    )
    assert.ok((await Promise.all(requests)).every(({ kind }) => kind === 'queued'))
    const { claims } = await claimTests(store, inboxMax + 2)
    for (const { emailId: id } of claims) await store.keepInboxEmail({ id, sealed: 'sealed' })
    const kept = await store.listInbox({ app: app.id, order: 'newest', limit: inboxMax + 2 })
    assert.equal(kept.length, inboxMax)
    assert.equal(kept[0]?.id, claims.at(-1)?.emailId)
    assert.equal((await claim(store)).length, 0)
  })
}
