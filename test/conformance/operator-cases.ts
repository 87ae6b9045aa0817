/** Conformance: what operators change and look up, and what a store reports of the emails it ends itself. */
import assert from 'node:assert/strict'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { stepMax } from '../../src/domain/bounds.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { lostLeaseWaitsMs, suspectAfter } from '../../src/domain/delivery/states.ts'
import { newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { EmailRecord } from '../../src/store/operator-store.ts'
import { leaseMs, type Store } from '../../src/store/store.ts'
import { deleteApp, listEmails, operator } from '../support/operator.ts'
import { testSettings } from '../support/service.ts'
import { repeat } from '../support/wait.ts'
import {
  claim,
  day,
  deferred,
  delivered,
  type It,
  newKey,
  newSender,
  refusal,
  request,
  type Sender,
  updateApp,
} from './subject.ts'

export function operators(it: It): void {
  it('a change of an app that expects another version is refused', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    const settings = { ...testSettings, name: 'First' }
    const first = await updateApp(store, app.id, { settings, ifVersion: app.version })
    assert.equal(first.version, app.version + 1)
    const change = { settings: { ...testSettings, name: 'Second' }, ifVersion: app.version }
    assert.equal(await store.updateApp(app.id, change, operator), 'stale')
    assert.equal((await store.findApp('a'))?.settings.name, 'First')
    await deleteApp(store, app.id)
    assert.equal(await store.updateApp(app.id, change, operator), null)
  })

  it('mail of an app disabled a short time ago is not cancelled; after seven days it is', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: 30 * day }))
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    assert.deepEqual(await store.cancelDeletedAppMail(sender.app.id), [])
    assert.equal((await store.readQueueGauge()).depth, 1)
    advance(7 * day)
    assert.equal((await store.cancelDeletedAppMail(sender.app.id)).length, 1)
    assert.equal((await store.readQueueGauge()).depth, 0)
  })

  it('a key is replaced: the new one works at once, the old one until its grace is over', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    const hash = hashDeliveryKey(newDeliveryKey())
    const replaced = await store.replaceKey(
      sender.keyId,
      {
        hash,
        expiresAt: null,
        oldExpiresAt: store.now() + 60_000,
      },
      operator,
    )
    assert.ok(replaced !== null && typeof replaced === 'object')
    assert.deepEqual([replaced.app, replaced.expiresAt], [sender.app.id, null])
    const [old, fresh] = [request(store, sender), request(store, { ...sender, keyHash: hash })]
    assert.equal((await store.enqueue(old)).kind, 'queued')
    assert.equal((await store.enqueue(fresh)).kind, 'queued')
    advance(61_000)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
    assert.equal((await store.enqueue(request(store, { ...sender, keyHash: hash }))).kind, 'queued')
    const again = {
      hash: hashDeliveryKey(newDeliveryKey()),
      expiresAt: null,
      oldExpiresAt: store.now() + 60_000,
    }
    assert.equal(await store.replaceKey(sender.keyId, again, operator), 'ended')
    assert.equal(await store.replaceKey(newId('key', 0), again, operator), null)
    assert.equal((await store.listKeys(sender.app.id)).length, 2)
  })

  it('a key and its successor have one name, and each can be changed under it', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    const hash = hashDeliveryKey(newDeliveryKey())
    const old = await newKey(store, { app: app.id, hash, name: 'web', expiresAt: null })
    const oldExpiresAt = store.now() + day
    const next = { hash: hashDeliveryKey(newDeliveryKey()), expiresAt: null, oldExpiresAt }
    const made = await store.replaceKey(old.id, next, operator)
    assert.ok(made !== null && typeof made === 'object')
    for (const { id } of [old, made]) {
      const changed = await store.updateKey(id, { name: 'web', expiresAt: store.now() + 2 * day }, operator)
      assert.equal(typeof changed, 'object', `${changed}`)
    }
  })

  it('a key that ends before its grace is over keeps its end', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    const expiresAt = store.now() + 10_000
    const hash = hashDeliveryKey(newDeliveryKey())
    const { id } = await newKey(store, { app: app.id, hash, name: 'short', expiresAt })
    const next = {
      hash: hashDeliveryKey(newDeliveryKey()),
      expiresAt: store.now() + 90_000,
      oldExpiresAt: store.now() + 60_000,
    }
    const replaced = await store.replaceKey(id, next, operator)
    assert.ok(replaced !== null && typeof replaced === 'object')
    assert.deepEqual([replaced.name, replaced.expiresAt], ['short', next.expiresAt])
    const old = (await store.listKeys(app.id)).find((key) => key.id === id)
    assert.equal(old?.expiresAt, expiresAt)
  })

  it('all deferred mail is tried now, of one app or of all, and nothing else changes', async (_t, { store }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    for (const sender of [one, one, two, two]) await store.enqueue(request(store, sender))
    for (const held of await claim(store)) await store.recordOutcome(held, deferred(600_000))
    await store.enqueue(request(store, two))
    assert.deepEqual(await store.retryDeferred([one.app.id], null, operator), { retried: 2, next: null })
    assert.deepEqual(await store.retryDeferred([one.app.id], null, operator), { retried: 0, next: null })
    assert.equal((await claim(store)).length, 3)
    const ids = (await listEmails(store, { state: 'deferred', limit: 9 })).map(({ id }) => id).sort()
    assert.deepEqual(await store.retryDeferred(null, ids[0] ?? null, operator), { retried: 1, next: null })
    assert.deepEqual(await store.retryDeferred(null, null, operator), { retried: 1, next: null })
    assert.equal((await claim(store)).length, 2)
  })

  it('retrying all skips suspect emails', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const queued = await store.enqueue(request(store, sender, { lifeMs: day }))
    assert.ok(queued.kind === 'queued')
    for (let lost = 0; lost < suspectAfter; lost++) {
      await claim(store)
      advance(leaseMs)
    }
    await claim(store) // takes the last lease back
    assert.equal((await store.findEmail(queued.emailId))?.state, 'deferred')
    assert.deepEqual(await store.retryDeferred(null, null, operator), { retried: 0, next: null })
  })

  it('retrying all goes through a long queue in steps, and touches each email once', async (_t, { store }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 1_000_000 })
    for (let n = 0; n < 3; n++) await store.enqueue(request(store, sender))
    for (const held of await claim(store)) await store.recordOutcome(held, deferred(600_000))
    await repeat(stepMax, () => store.enqueue(request(store, sender)))
    const first = await store.retryDeferred(null, null, operator)
    assert.equal(first.retried, 3)
    assert.ok(first.next !== null)
    assert.deepEqual(await store.retryDeferred(null, first.next, operator), { retried: 0, next: null })
  })

  it('an email names the key that sent it, queued and finished', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const result = await store.enqueue(request(store, sender))
    assert.ok(result.kind === 'queued')
    assert.deepEqual([result.appId, result.keyId], [sender.app.id, sender.keyId])
    assert.equal((await store.findEmail(result.emailId))?.key, sender.keyId)
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    assert.equal((await store.findEmail(result.emailId))?.key, sender.keyId)
    assert.equal((await listEmails(store, { key: sender.keyId, limit: 9 })).length, 1)
    const other = await newSender(store, 'b')
    assert.equal((await listEmails(store, { key: other.keyId, limit: 9 })).length, 0)
  })

  it('lists combine app, state and recipient', async (_t, { store, advance }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await store.enqueue(request(store, one, { lifeMs: 1000 }))
    advance(1) // ids of one millisecond have no order
    await store.enqueue(request(store, two, { lifeMs: 1000 }))
    advance(1000)
    await claim(store)
    await store.enqueue(request(store, one, { to: 'ada@x.org' }))
    const states = async (query: Partial<Parameters<Store['listEmails']>[0]>) =>
      (await listEmails(store, { limit: 9, ...query })).map(({ app, state }) => [app, state])
    assert.deepEqual(await states({ app: one.app.id, state: 'expired' }), [[one.app.id, 'expired']])
    assert.deepEqual(await states({ app: one.app.id }), [
      [one.app.id, 'queued'],
      [one.app.id, 'expired'],
    ])
    assert.deepEqual(await states({ state: 'expired', limit: 1 }), [[two.app.id, 'expired']])
    await store.enqueue(request(store, one, { to: 'bob@x.org' }))
    await claim(store)
    const sending = { app: one.app.id, state: 'sending' } as const
    assert.equal((await states(sending)).length, 2)
    assert.equal((await states({ ...sending, recipient: store.nameRecipient('bob@x.org' as EmailAddress) })).length, 1)
    assert.equal((await states({ ...sending, type: 'password_reset' })).length, 0)
  })

  it('lists keep to a period, and find a part of a reply but no field of a record', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    // The ids of this process may be ahead of the store's clock.
    const queue = async () => {
      const queued = await store.enqueue(request(store, sender))
      assert.ok(queued.kind === 'queued')
      const digits = [...queued.emailId.slice(3, 13)].map((digit) => '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit))
      return digits.reduce((sum, digit) => sum * 32 + digit, 0)
    }
    const [first, second] = [await queue(), await queue()]
    const reply = parseReply('250 2.0.0 Ok: queued as 4Fx"Ä_9')
    for (const held of await claim(store))
      await store.recordOutcome(held, { kind: 'delivered', reply, relay: 'mx.test:25' })
    const count = async (query: Partial<Parameters<Store['listEmails']>[0]>) =>
      (await listEmails(store, { limit: 9, ...query })).length
    assert.deepEqual([await count({ since: first }), await count({ since: second + 1 })], [2, 0])
    assert.deepEqual([await count({ until: second + 1 }), await count({ until: first - 9999 })], [2, 0])
    assert.equal(await count({ since: first, until: second + 1 }), 2)
    for (const text of ['4fX"', '_9', 'MX.test', 'Fx"Ä_', 'FX"ä_']) assert.equal(await count({ reply: text }), 2, text)
    for (const text of ['4Fx9', '4Fx__', '%', 'outcome', 'delivered'])
      assert.equal(await count({ reply: text }), 0, text)
  })

  it('an id is found by how it begins, in all tables that have such ids', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const sent = await store.enqueue(request(store, sender))
    assert.ok(sent.kind === 'queued')
    const id = sent.emailId
    const find = (length: number) => store.findIdsFrom(id.slice(0, length))
    assert.deepEqual(await find(21), [id])
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    assert.deepEqual(await find(17), [id])
    assert.deepEqual(await store.findIdsFrom(sender.keyId.slice(0, 20)), [sender.keyId])
    await store.enqueue(request(store, sender))
    await store.enqueue(request(store, sender))
    assert.equal((await find(8)).length, 2, 'two at most')
    assert.deepEqual(await store.findIdsFrom('em_zzzzzzzzzzzzzz'), [])
    assert.deepEqual(await store.findIdsFrom('constructor_x'), [])
  })

  it('a request over the limit of its key is no use of the key', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 1 })
    const lastUse = async () => (await store.listKeys(sender.app.id))[0]?.lastUsedAt
    await store.enqueue(refusal(sender))
    const first = await lastUse()
    assert.ok(first)
    advance(59_000)
    assert.equal((await store.enqueue(refusal(sender))).kind, 'key_rate_limited')
    advance(2_000)
    await store.enqueue(refusal(sender))
    advance(58_000)
    const second = await lastUse()
    assert.equal((await store.enqueue(refusal(sender))).kind, 'key_rate_limited')
    advance(1_900)
    assert.equal((await store.enqueue(refusal(sender))).kind, 'key_rate_limited')
    assert.equal(await lastUse(), second)
  })
}

/** Queues an email, and returns its id. */
async function queue(store: Store, sender: Sender, lifeMs?: number) {
  const result = await store.enqueue(request(store, sender, lifeMs === undefined ? {} : { lifeMs }))
  assert.ok(result.kind === 'queued')
  return result.emailId
}

export function endedByTheStore(it: It): void {
  it('emails that expire during a claim are reported by it, each once', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const other = await newSender(store, 'b')
    const ids = [await queue(store, sender, 1000), await queue(store, sender, 1000), await queue(store, other, 1000)]
    advance(2000) // more than their life: the clock of the machine may be corrected meanwhile
    const { claims, ended } = await store.claimDue({ max: 9, perApp: 9, leases: [] })
    assert.deepEqual(claims, [])
    assert.deepEqual(
      ended.toSorted((a, b) => (a.emailId < b.emailId ? -1 : 1)),
      ids.map((emailId, n) => ({
        emailId,
        appId: n < 2 ? sender.app.id : other.app.id,
        state: 'expired',
        reason: null,
      })),
    )
    assert.deepEqual((await store.claimDue({ max: 9, perApp: 9, leases: [] })).ended, [])
    assert.deepEqual((await store.maintain()).ended, [])
  })

  it('emails that expire or are cancelled in maintenance are reported by it', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const appId = sender.app.id
    const [first, second] = [await queue(store, sender, 1000), await queue(store, sender)]
    advance(1000)
    const expired = { emailId: first, appId, state: 'expired', reason: null }
    assert.deepEqual((await store.maintain()).ended, [expired])
    await deleteApp(store, appId)
    const cancelled = { emailId: second, appId, state: 'cancelled', reason: 'app_inactive' }
    assert.deepEqual((await store.maintain()).ended, [cancelled])
  })

  it('row 31: an email waits longer after each lost lease, is reported each time, and never fails for it', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: day }))
    const [first] = await claim(store)
    assert.ok(first)
    const waits = [...lostLeaseWaitsMs, ...lostLeaseWaitsMs.slice(-1), ...lostLeaseWaitsMs.slice(-1)]
    for (const [index, waitMs] of waits.entries()) {
      advance(leaseMs)
      const { claims, lost } = await store.claimDue({ max: 9, perApp: 9, leases: [] })
      assert.deepEqual(lost, [{ emailId: first.emailId, count: index + 1 }])
      assert.equal(claims.length, waitMs === 0 ? 1 : 0)
      if (waitMs === 0) continue
      const record: EmailRecord | null = await store.findEmail(first.emailId)
      assert.deepEqual([record?.state, record?.lostLeases], ['deferred', index + 1])
      assert.equal(record?.nextAttemptAt, (record?.trail.at(-1)?.at ?? 0) + waitMs)
      advance(waitMs)
      const [again] = await claim(store)
      assert.deepEqual([again?.emailId, again?.isSuspect, again?.attempt], [first.emailId, true, 1])
    }
    advance(day)
    const { ended } = await store.claimDue({ max: 9, perApp: 9, leases: [] })
    const { emailId, appId } = first
    assert.deepEqual(ended, [{ emailId, appId, state: 'expired', reason: null }])
    assert.equal((await store.findEmail(first.emailId))?.lostLeases, waits.length + 1)
  })

  it('the end of an email that a worker recorded is not reported again', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    assert.deepEqual((await store.claimDue({ max: 9, perApp: 9, leases: [] })).ended, [])
  })

  it('a lost lease is reported by its fence: the newer lease of the same email holds', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: day }))
    const [old] = await claim(store)
    assert.ok(old)
    advance(leaseMs)
    const [fresh] = await claim(store)
    assert.ok(fresh && fresh.emailId === old.emailId)
    const lost = await store.renewLeases([old, fresh])
    assert.deepEqual(
      lost.map(({ fence }) => fence),
      [old.fence],
    )
    assert.equal(await store.recordOutcome(fresh, deferred(1000)), true)
  })
}
