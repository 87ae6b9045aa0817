/**
 * What every store must do, whatever its engine: the same cases run against each one. They speak
 * of what is durable, exact and private, and know nothing of SQL.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { App, AppSettings } from '../../src/email/app.ts'
import type { DeliveryOutcome } from '../../src/email/delivery.ts'
import { hashDeliveryKey, type KeyHash, newDeliveryKey } from '../../src/email/delivery-key.ts'
import type { EmailAddress } from '../../src/email/email-address.ts'
import { type AppId, type KeyId, newId } from '../../src/email/id.ts'
import type { KeyRing } from '../../src/store/key-ring.ts'
import { type Claim, type EnqueueRequest, leaseMs, type Store } from '../../src/store/store.ts'
import { newRing, testSettings } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'

/** One store on data of its own. */
export type Subject = {
  readonly store: Store
  advance(byMs: number): void
  /** The same data, opened again (by another ring, where given), as a second process would. */
  reopen(options?: { ring?: KeyRing; queueMax?: number }): Promise<Store>
}

export type Engine = {
  readonly name: string
  open(t: TestContext, options?: { ring?: KeyRing; queueMax?: number }): Promise<Subject>
}

const day = 86_400_000
const delivered: DeliveryOutcome = { kind: 'delivered', reply: '250 ok', relay: 'relay:25' }
const deferred = (waitMs: number): DeliveryOutcome => ({
  kind: 'deferred',
  reply: '451 later',
  relay: 'relay:25',
  ambiguous: false,
  waitMs,
})

type Sender = { app: App; keyHash: KeyHash; keyId: KeyId }

async function newSender(
  store: Store,
  slug: string,
  limits: Partial<AppSettings['limits']> = {},
): Promise<Sender> {
  const settings = { ...testSettings, limits: { ...testSettings.limits, ...limits } }
  const app = await store.createApp(slug, settings)
  assert.ok(app)
  const keyHash = hashDeliveryKey(newDeliveryKey())
  const key = await store.createKey({ app: app.id, hash: keyHash, name: null, expiresAt: null })
  return { app, keyHash, keyId: key.id }
}

let serial = 0

function request(
  store: Store,
  sender: Sender,
  more: { to?: string; idem?: string; body?: string; lifeMs?: number } = {},
): EnqueueRequest {
  const to = (more.to ?? `r${serial++}@example.com`) as EmailAddress
  return {
    keyHash: sender.keyHash,
    appVersion: sender.app.version,
    verdict: {
      admit: {
        id: newId('em', store.now()),
        type: 'magic_link',
        expiresAt: store.now() + (more.lifeMs ?? 900_000),
        content: { to, url: 'https://app.acme.test/?token=abc', messageIdDomain: 'acme.test' },
      },
    },
    idempotency: more.idem === undefined ? null : { key: more.idem, bodyDigest: more.body ?? 'digest' },
  }
}

const refusal = (sender: Sender): EnqueueRequest => ({
  keyHash: sender.keyHash,
  appVersion: sender.app.version,
  verdict: { refuse: 'invalid_url' },
  idempotency: null,
})

const claim = async (store: Store, max = 10): Promise<readonly Claim[]> =>
  (await store.claimDue({ max, perApp: 1000, inHand: new Map() })).claims

const kinds = (results: readonly { kind: string }[]) => {
  const counts: Record<string, number> = {}
  for (const { kind } of results) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** Registers all cases for one engine. */
export function describeStore(engine: Engine): void {
  const it = (
    name: string,
    run: (t: TestContext, subject: Subject) => Promise<void>,
    options?: { queueMax?: number },
  ) => test(`${engine.name}: ${name}`, async (t) => run(t, await engine.open(t, options)))
  keysAndApps(it)
  limits(it)
  idempotency(it)
  queue(it)
  leases(it)
  fairness(it)
  privacy(it, engine)
  upkeep(it)
}

type It = (
  name: string,
  run: (t: TestContext, subject: Subject) => Promise<void>,
  options?: { queueMax?: number },
) => void

function keysAndApps(it: It): void {
  it('an unknown key is refused, a known one queues', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const unknown = { ...request(store, sender), keyHash: hashDeliveryKey(newDeliveryKey()) }
    assert.equal((await store.enqueue(unknown)).kind, 'invalid_key')
    assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    assert.equal((await store.queueGauge()).depth, 1)
  })

  it('judged by settings that are not the current ones: judge again, nothing charged', async (_t, {
    store,
  }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 1 })
    const stale = await store.enqueue({ ...request(store, sender), appVersion: null })
    assert.ok(stale.kind === 'judge_again' && stale.app.id === sender.app.id)
    const app = await store.updateApp(sender.app.id, { settings: { ...sender.app.settings, name: 'New' } })
    const again = await store.enqueue(request(store, sender))
    assert.ok(again.kind === 'judge_again' && again.app.settings.name === 'New')
    assert.equal(
      (await store.enqueue({ ...request(store, sender), appVersion: app?.version ?? 0 })).kind,
      'queued',
    )
  })

  it('a revocation by another process holds for the very next request', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    const other = await reopen()
    atEnd(t, () => other.close())
    await other.revokeKey(sender.keyId)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
  })

  it('a key stops at its expiry, an app when it is disabled or deleted', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const hash = hashDeliveryKey(newDeliveryKey())
    await store.createKey({ app: sender.app.id, hash, name: 'short', expiresAt: store.now() + 1000 })
    const short = { ...sender, keyHash: hash }
    assert.equal((await store.enqueue(request(store, short))).kind, 'queued')
    advance(1000)
    assert.equal((await store.enqueue(request(store, short))).kind, 'invalid_key')
    await store.updateApp(sender.app.id, { status: 'disabled' })
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
    const enabled = await store.updateApp(sender.app.id, { status: 'active' })
    assert.equal(
      (await store.enqueue({ ...request(store, sender), appVersion: enabled?.version ?? 0 })).kind,
      'queued',
    )
    assert.equal(await store.deleteApp(sender.app.id), true)
    assert.equal(await store.deleteApp(sender.app.id), false)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
    assert.equal(await store.findApp('a'), null)
  })

  it('slugs are unique, and free again once their app is deleted', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    assert.equal(await store.createApp('a', testSettings), null)
    await store.deleteApp(app.id)
    assert.ok(await store.createApp('a', testSettings))
  })

  it('the last use of a key is recorded, at most once a minute', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const lastUse = async () => (await store.listKeys(sender.app.id))[0]?.lastUsedAt
    assert.equal(await lastUse(), null)
    await store.enqueue(refusal(sender))
    const first = await lastUse()
    assert.ok(typeof first === 'number')
    await store.enqueue(refusal(sender))
    assert.equal(await lastUse(), first)
    advance(61_000)
    await store.enqueue(refusal(sender))
    assert.ok(((await lastUse()) ?? 0) > first)
  })
}

function limits(it: It): void {
  it('every request charges its key, valid or not, exactly', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 5 })
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        store.enqueue(i % 2 === 0 ? refusal(sender) : request(store, sender)),
      ),
    )
    assert.equal(results.filter((result) => result.kind === 'key_rate_limited').length, 3)
    const hit = await store.enqueue(refusal(sender))
    assert.ok(hit.kind === 'key_rate_limited')
    assert.equal(hit.limit.quota, 5)
    assert.equal(hit.limit.windowS, 60)
    advance(hit.limit.retryAfterMs)
    assert.equal((await store.enqueue(refusal(sender))).kind, 'refused')
  })

  it('the recipient limit counts emails accepted, in any case of letters', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 3 })
    const post = (to: string) => store.enqueue(request(store, sender, { to }))
    assert.deepEqual(
      kinds(await Promise.all(['Ada@x.org', 'ada@x.org', 'ADA@x.org', 'ada@x.org'].map(post))),
      { queued: 3, recipient_rate_limited: 1 },
    )
    assert.equal((await post('bob@x.org')).kind, 'queued')
    advance(20 * 60_000)
    assert.equal((await post('ada@x.org')).kind, 'queued')
    assert.equal((await post('ada@x.org')).kind, 'recipient_rate_limited')
  })

  it('tags and the dots of Gmail share a bucket of five times the limit', async (_t, { store }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 2 })
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        store.enqueue(request(store, sender, { to: `a.da+${i}@gmail.com` })),
      ),
    )
    assert.deepEqual(kinds(results), { queued: 10, recipient_rate_limited: 2 })
  })

  it('the limits of one app are not those of another', async (_t, { store }) => {
    const [one, two] = [
      await newSender(store, 'a', { recipientPerHour: 1 }),
      await newSender(store, 'b', { recipientPerHour: 1 }),
    ]
    assert.equal((await store.enqueue(request(store, one, { to: 'ada@x.org' }))).kind, 'queued')
    assert.equal((await store.enqueue(request(store, two, { to: 'ada@x.org' }))).kind, 'queued')
    assert.equal(
      (await store.enqueue(request(store, one, { to: 'ada@x.org' }))).kind,
      'recipient_rate_limited',
    )
  })

  it('the daily limit ends with the UTC day', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { daily: 3 })
    const results = await Promise.all(Array.from({ length: 5 }, () => store.enqueue(request(store, sender))))
    assert.deepEqual(kinds(results), { queued: 3, daily_limit_reached: 2 })
    const hit = results.find((result) => result.kind === 'daily_limit_reached')
    assert.ok(hit && 'limit' in hit)
    assert.equal((store.now() + hit.limit.retryAfterMs) % day < 1000, true)
    advance(hit.limit.retryAfterMs)
    assert.equal((await store.enqueue(request(store, sender, { lifeMs: day }))).kind, 'queued')
  })

  it('a refused email costs nothing but its key', async (_t, { store }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 1, daily: 2 })
    assert.equal((await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'queued')
    for (let i = 0; i < 3; i++)
      assert.equal(
        (await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind,
        'recipient_rate_limited',
      )
    assert.equal((await store.enqueue(request(store, sender, { to: 'bob@x.org' }))).kind, 'queued')
    for (let i = 0; i < 3; i++)
      assert.equal(
        (await store.enqueue(request(store, sender, { to: 'cy@x.org' }))).kind,
        'daily_limit_reached',
      )
    await store.updateApp(sender.app.id, {
      settings: { ...sender.app.settings, limits: { ...sender.app.settings.limits, daily: 3 } },
    })
    const app = await store.findApp('a')
    assert.equal(
      (await store.enqueue({ ...request(store, sender, { to: 'cy@x.org' }), appVersion: app?.version ?? 0 }))
        .kind,
      'queued',
    )
  })

  it('limits hold across processes and restarts', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 6, daily: 100 })
    const other = await reopen()
    atEnd(t, () => other.close())
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? store : other).enqueue(request(store, sender, { to: 'ada@x.org' })),
      ),
    )
    assert.deepEqual(kinds(results), { queued: 6, recipient_rate_limited: 14 })
    const third = await reopen()
    atEnd(t, () => third.close())
    assert.equal(
      (await third.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind,
      'recipient_rate_limited',
    )
  })

  it(
    'a full queue refuses, charges no email limit, and takes mail again when there is room',
    async (_t, { store }) => {
      const sender = await newSender(store, 'a', { recipientPerHour: 1 })
      for (let i = 0; i < 3; i++) assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
      for (let i = 0; i < 3; i++)
        assert.equal((await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'queue_full')
      for (const held of await claim(store)) await store.recordOutcome(held, delivered)
      assert.equal((await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'queued')
    },
    { queueMax: 3 },
  )

  it('usage tells by day what was accepted and why the rest was not', async (_t, { store }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 1 })
    await store.enqueue(request(store, sender, { to: 'ada@x.org' }))
    await store.enqueue(request(store, sender, { to: 'ada@x.org' }))
    await store.enqueue(refusal(sender))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    const [today] = await store.usage(sender.app.id)
    assert.equal(today?.day, new Date(store.now()).toISOString().slice(0, 10))
    assert.deepEqual(
      { ...today?.counts },
      { accepted: 1, delivered: 1, invalid_url: 1, recipient_rate_limited: 1 },
    )
  })
}

function idempotency(it: It): void {
  it('the same key and body replay, another body is refused, another app is apart', async (_t, { store }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    const first = await store.enqueue(request(store, one, { idem: 'k' }))
    const again = await store.enqueue(request(store, one, { idem: 'k' }))
    assert.ok(first.kind === 'queued' && again.kind === 'replayed' && again.emailId === first.emailId)
    assert.equal(
      (await store.enqueue(request(store, one, { idem: 'k', body: 'other' }))).kind,
      'idempotency_key_reused',
    )
    assert.equal((await store.enqueue(request(store, two, { idem: 'k' }))).kind, 'queued')
    assert.equal((await store.queueGauge()).depth, 2)
  })

  it('racing copies queue one email', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    const other = await reopen()
    atEnd(t, () => other.close())
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        (i % 2 === 0 ? store : other).enqueue(request(store, sender, { idem: 'k' })),
      ),
    )
    assert.deepEqual(kinds(results), { queued: 1, replayed: 29 })
    assert.equal((await store.queueGauge()).depth, 1)
  })

  it(
    'a replay is answered though the queue is full and the limits reached, and charges none of them',
    async (_t, { store }) => {
      const sender = await newSender(store, 'a', { recipientPerHour: 1, daily: 1 })
      const copy = () => store.enqueue(request(store, sender, { to: 'ada@x.org', idem: 'k' }))
      assert.equal((await copy()).kind, 'queued')
      for (let i = 0; i < 5; i++) assert.equal((await copy()).kind, 'replayed')
      assert.equal(
        (await store.enqueue({ ...refusal(sender), idempotency: { key: 'k', bodyDigest: 'digest' } })).kind,
        'replayed',
        'also where the body would be refused by now',
      )
    },
    { queueMax: 1 },
  )

  it('a refused request leaves its key unused; a stored one is forgotten after a day', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue({ ...refusal(sender), idempotency: { key: 'k', bodyDigest: 'x' } })
    assert.equal((await store.enqueue(request(store, sender, { idem: 'k' }))).kind, 'queued')
    advance(day)
    assert.equal((await store.enqueue(request(store, sender, { idem: 'k', body: 'other' }))).kind, 'queued')
  })
}

function queue(it: It): void {
  it('what was queued is claimed once, with its content, oldest first', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      const result = await store.enqueue(request(store, sender, { to: `n${i}@x.org` }))
      if (result.kind === 'queued') ids.push(result.emailId)
    }
    const { claims, apps } = await store.claimDue({ max: 3, perApp: 10, inHand: new Map() })
    assert.deepEqual(
      claims.map((held) => held.emailId),
      ids.slice(0, 3),
    )
    assert.deepEqual(claims[0]?.content, {
      to: 'n0@x.org',
      url: 'https://app.acme.test/?token=abc',
      messageIdDomain: 'acme.test',
    })
    assert.ok(claims[0].lifeLeftMs > 890_000 && claims[0].lifeLeftMs <= 900_000)
    assert.equal(claims[0].attempt, 1)
    assert.equal(apps.get(sender.app.id)?.slug, 'a')
    assert.deepEqual(
      (await claim(store)).map((held) => held.emailId),
      ids.slice(3),
    )
    assert.deepEqual(await claim(store), [])
  })

  it('a delivered email is recorded and leaves the queue', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    assert.equal((await store.findEmail(held.emailId))?.state, 'sending')
    assert.equal(await store.recordOutcome(held, delivered), true)
    const record = await store.findEmail(held.emailId)
    assert.equal(record?.state, 'delivered')
    assert.equal(record.trail.at(-1)?.reply, '250 ok')
    assert.deepEqual(await store.queueGauge(), { depth: 0, oldestAcceptedAt: null })
  })

  it('a deferred email waits its time and keeps its attempts', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, deferred(5000))
    const record = await store.findEmail(held.emailId)
    assert.equal(record?.state, 'deferred')
    assert.equal(record.nextAttemptAt !== null && record.nextAttemptAt > store.now() + 4000, true)
    assert.deepEqual(await claim(store), [])
    advance(5000)
    const [again] = await claim(store)
    assert.equal(again?.attempt, 2)
  })

  it('an attempt that was not made is given back', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, { kind: 'unattempted', reply: 'the worker stopped', waitMs: 0 })
    assert.equal((await store.findEmail(held.emailId))?.state, 'queued')
    assert.equal((await claim(store))[0]?.attempt, 1)
  })

  it('an expired email is never handed out, queued or deferred', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: 10_000 }))
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, deferred(60_000))
    const second = await store.enqueue(request(store, sender, { lifeMs: 10_000 }))
    advance(10_000)
    assert.deepEqual(await claim(store), [])
    assert.equal((await store.findEmail(held.emailId))?.state, 'expired')
    assert.equal(second.kind === 'queued' && (await store.findEmail(second.emailId))?.state, 'expired')
    assert.equal((await store.queueGauge()).depth, 0)
  })

  it('retry makes a deferred email due, cancel ends one, and neither touches the rest', async (_t, {
    store,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    const { emailId } = held
    assert.equal(await store.retryEmail(emailId), 'sending')
    assert.equal(await store.cancelEmail(emailId), 'sending')
    await store.recordOutcome(held, deferred(600_000))
    assert.equal(await store.retryEmail(emailId), 'done')
    assert.equal(await store.retryEmail(emailId), 'not_deferred')
    assert.equal(await store.cancelEmail(emailId), 'done')
    assert.equal(await store.cancelEmail(emailId), 'finished')
    assert.equal(await store.retryEmail(newId('em', 0)), 'not_found')
    assert.equal((await store.findEmail(emailId))?.state, 'cancelled')
  })

  it('emails are found by app, state and recipient, newest first', async (_t, { store }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await store.enqueue(request(store, one, { to: 'ada@x.org' }))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    await store.enqueue(request(store, one, { to: 'Ada@x.org' }))
    await store.enqueue(request(store, two, { to: 'bob@x.org' }))
    const list = async (query: Partial<Parameters<Store['listEmails']>[0]>) =>
      (await store.listEmails({ limit: 50, ...query })).map((email) => email.state)
    assert.deepEqual(await list({}), ['queued', 'queued', 'delivered'])
    assert.deepEqual(await list({ limit: 1 }), ['queued'])
    assert.deepEqual(await list({ to: 'ADA@x.org' as EmailAddress }), ['queued', 'delivered'])
    assert.deepEqual(await list({ app: two.app.id }), ['queued'])
    assert.deepEqual(await list({ state: 'delivered' }), ['delivered'])
    assert.deepEqual(await list({ state: 'failed' }), [])
    const summary = await store.queueSummary()
    assert.equal(summary.depth, 2)
    assert.equal(summary.counts.length, 2)
  })
}

function leases(it: It): void {
  it('only the holder of the lease records an outcome', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [first] = await claim(store)
    assert.ok(first)
    advance(leaseMs)
    const [second] = await claim(store)
    assert.equal(second?.emailId, first.emailId)
    assert.equal(await store.recordOutcome(first, delivered), false)
    assert.equal((await store.findEmail(first.emailId))?.state, 'sending')
    assert.equal(await store.recordOutcome(second, delivered), true)
    assert.equal(await store.recordOutcome(second, delivered), false)
  })

  it('a renewed lease holds; a lost one is reported', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    advance(leaseMs - 1000)
    assert.deepEqual(await store.renewLeases([held]), [])
    advance(leaseMs - 1000)
    assert.deepEqual(await claim(store), [])
    advance(1000)
    assert.equal((await claim(store)).length, 1)
    assert.deepEqual(await store.renewLeases([held]), [held.emailId])
  })

  it('two workers never hold the same email', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    await Promise.all(Array.from({ length: 60 }, () => store.enqueue(request(store, sender))))
    const other = await reopen()
    atEnd(t, () => other.close())
    const claims = (
      await Promise.all(Array.from({ length: 12 }, (_, i) => claim(i % 2 === 0 ? store : other, 5)))
    ).flat()
    assert.equal(claims.length, 60)
    assert.equal(new Set(claims.map((held) => held.emailId)).size, 60)
  })

  it('an email that loses leases is tried alone, then failed; lost leases are not attempts', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: day }))
    const [poison] = await claim(store)
    assert.ok(poison)
    advance(leaseMs)
    await claim(store)
    await store.enqueue(request(store, sender, { lifeMs: day }))
    advance(leaseMs)
    const inHand = new Map<AppId, number>([[sender.app.id, 1]])
    const busy = await store.claimDue({ max: 10, perApp: 10, inHand })
    assert.equal(busy.suspects, true)
    assert.ok(busy.claims.every((held) => held.emailId !== poison.emailId && !held.alone))
    const alone = await claim(store)
    assert.deepEqual(
      alone.map((held) => [held.emailId, held.alone, held.attempt]),
      [[poison.emailId, true, 1]],
    )
    advance(leaseMs)
    await claim(store)
    advance(leaseMs)
    await claim(store)
    advance(leaseMs)
    await claim(store)
    const record = await store.findEmail(poison.emailId)
    assert.deepEqual([record?.state, record?.reason], ['failed', 'workers_lost'])
  })
}

function fairness(it: It): void {
  it('one app’s flood does not stand before another’s email', async (_t, { store }) => {
    const [flood, small] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await Promise.all(Array.from({ length: 200 }, () => store.enqueue(request(store, flood))))
    await store.enqueue(request(store, small))
    const claims = await claim(store, 10)
    assert.equal(claims.filter((held) => held.appId === small.app.id).length, 1)
    assert.equal(claims.length, 10)
  })

  it('apps take turns when there are more of them than places', async (_t, { store }) => {
    const senders = await Promise.all(Array.from({ length: 6 }, (_, i) => newSender(store, `s${i}`)))
    for (const sender of senders)
      await Promise.all([1, 2, 3].map(() => store.enqueue(request(store, sender))))
    const turns: string[] = []
    for (let i = 0; i < 6; i++) turns.push(...(await claim(store, 2)).map((held) => held.appId))
    const firstTwelve = kinds(turns.map((kind) => ({ kind })))
    assert.deepEqual(Object.values(firstTwelve), [2, 2, 2, 2, 2, 2])
  })

  it('no app holds more than its share of a worker', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await Promise.all(Array.from({ length: 20 }, () => store.enqueue(request(store, sender))))
    const { claims } = await store.claimDue({ max: 10, perApp: 4, inHand: new Map([[sender.app.id, 1]]) })
    assert.equal(claims.length, 3)
  })

  it('mail of a disabled app is held, and cancelled after seven days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const result = await store.enqueue(request(store, sender, { lifeMs: 30 * day }))
    await store.updateApp(sender.app.id, { status: 'disabled' })
    assert.deepEqual(await claim(store), [])
    await store.updateApp(sender.app.id, { status: 'active' })
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, deferred(1000))
    await store.updateApp(sender.app.id, { status: 'disabled' })
    advance(7 * day - 1000)
    while (await store.sweep());
    assert.deepEqual(await claim(store), [])
    assert.equal((await store.queueGauge()).depth, 1)
    advance(2000)
    while (await store.sweep());
    assert.equal(result.kind === 'queued' && (await store.findEmail(result.emailId))?.state, 'cancelled')
  })

  it('mail of a revoked key is still sent', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    await store.revokeKey(sender.keyId)
    assert.equal((await claim(store)).length, 1)
  })

  it('deleting an app cancels its mail, also what is being sent', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await Promise.all(Array.from({ length: 1200 }, () => store.enqueue(request(store, sender))))
    const [held] = await claim(store, 1)
    assert.ok(held)
    await store.deleteApp(sender.app.id)
    while (await store.sweep());
    assert.equal((await store.queueGauge()).depth, 0)
    assert.equal(await store.recordOutcome(held, delivered), false)
    assert.equal((await store.findEmail(held.emailId))?.state, 'cancelled')
  })
}

function privacy(it: It, engine: Engine): void {
  it('rotation: older keys of the ring open what they sealed, and limits go on', async (t, {
    store,
    reopen,
  }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 1 })
    await store.enqueue(request(store, sender, { to: 'ada@x.org' }))
    await assert.rejects(reopen({ ring: newRing('stranger') }), { name: 'KeyMissing' })
    const rotated = await reopen({ ring: [...newRing('new'), ...testRing(store)] })
    atEnd(t, () => rotated.close())
    assert.equal(
      (await rotated.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind,
      'recipient_rate_limited',
    )
    assert.equal((await claim(rotated))[0]?.content.to, 'ada@x.org')
  })

  test(`${engine.name}: an email whose key has left the ring fails as unreadable, the others flow`, async (t) => {
    const [old, fresh] = [newRing('old'), newRing('new')]
    const { store, reopen } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a')
    const lost = await store.enqueue(request(store, sender))
    const rotated = await reopen({ ring: [...fresh, ...old] })
    await rotated.enqueue(request(rotated, sender, { to: 'bob@x.org' }))
    await rotated.close()
    const without = await reopen({ ring: fresh })
    atEnd(t, () => without.close())
    assert.deepEqual(
      (await claim(without)).map((held) => held.content.to),
      ['bob@x.org'],
    )
    const record = lost.kind === 'queued' ? await without.findEmail(lost.emailId) : null
    assert.deepEqual([record?.state, record?.reason], ['failed', 'unreadable'])
  })
}

/** The ring that `engine.open` was given, by the store it made. */
const rings = new WeakMap<Store, KeyRing>()
export const rememberRing = (store: Store, ring: KeyRing): void => void rings.set(store, ring)
const testRing = (store: Store): KeyRing => rings.get(store) ?? newRing()

function upkeep(it: It): void {
  it('records go after thirty days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const result = await store.enqueue(request(store, sender))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    assert.ok(result.kind === 'queued')
    advance(29 * day)
    while (await store.sweep());
    assert.ok(await store.findEmail(result.emailId))
    advance(2 * day)
    while (await store.sweep());
    assert.equal(await store.findEmail(result.emailId), null)
  })
}
