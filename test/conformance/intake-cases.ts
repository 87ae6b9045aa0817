/** Conformance: keys, apps, limits and idempotency, all decided inside the enqueue transaction. */
import assert from 'node:assert/strict'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { newId } from '../../src/domain/id.ts'
import { deleteApp, operator } from '../support/operator.ts'
import { testSettings } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import {
  claim,
  day,
  delivered,
  type It,
  kinds,
  newKey,
  newSender,
  refusal,
  request,
  type Sender,
  updateApp,
} from './subject.ts'

export function keysAndApps(it: It): void {
  it('an unknown key is refused, a known one queues', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const unknown = { ...request(store, sender), keyHash: hashDeliveryKey(newDeliveryKey()) }
    assert.equal((await store.enqueue(unknown)).kind, 'invalid_key')
    assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    assert.equal((await store.readQueueGauge()).depth, 1)
  })

  it('judged by settings that are not the current ones: judge again, nothing charged', async (_t, { store }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 1 })
    const stale = await store.enqueue({ keyHash: sender.keyHash, judged: null })
    assert.ok(stale.kind === 'judge_again' && stale.app.id === sender.app.id)
    const app = await updateApp(store, sender.app.id, { settings: { ...sender.app.settings, name: 'New' } })
    const again = await store.enqueue(request(store, sender))
    assert.ok(again.kind === 'judge_again' && again.app.settings.name === 'New')
    assert.equal((await store.enqueue(request(store, sender, { version: app.version }))).kind, 'queued')
  })

  it('the networks of a key come with the settings, and a change of them counts as one', async (t, {
    store,
    reopen,
  }) => {
    const sender = await newSender(store, 'a')
    const networks = ['192.0.2.0/24', '2001:db8::/32']
    const hash = hashDeliveryKey(newDeliveryKey())
    const key = await newKey(store, { app: sender.app.id, hash, name: 'near', expiresAt: null, networks })
    assert.deepEqual(key.networks, networks)
    const judgeAgain = async (keyHash = hash, version = 0) => {
      const answer = await store.enqueue({ ...request(store, sender, { version }), keyHash })
      return answer.kind === 'judge_again' ? [answer.networks, answer.app.version] : answer.kind
    }
    const { version } = sender.app
    assert.deepEqual(await judgeAgain(), [networks, version])
    assert.deepEqual(await judgeAgain(sender.keyHash), [null, version])
    assert.equal(await judgeAgain(hash, version), 'queued')
    const other = await reopen()
    atEnd(t, () => other.close())
    await other.updateKey(key.id, { name: 'here', networks: [...networks] }, operator)
    assert.equal(await judgeAgain(hash, version), 'queued', 'another name is no change of networks')
    await other.updateKey(key.id, { networks: ['192.0.2.7'] }, operator)
    assert.deepEqual(await judgeAgain(hash, version), [['192.0.2.7'], version + 1])
    const next = { hash: hashDeliveryKey(newDeliveryKey()), expiresAt: null, oldExpiresAt: store.now() + day }
    const successor = await store.replaceKey(key.id, next, operator)
    assert.ok(successor !== null && typeof successor === 'object')
    assert.deepEqual(successor.networks, ['192.0.2.7'])
    assert.deepEqual(await judgeAgain(next.hash), [['192.0.2.7'], version + 1])
    await other.updateKey(key.id, { networks: null }, operator)
    assert.deepEqual(await judgeAgain(), [null, version + 2])
    assert.equal((await store.findKey(key.id))?.networks, null)
  })

  it('a revocation by another process holds for the very next request', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    const other = await reopen()
    atEnd(t, () => other.close())
    await other.revokeKey(sender.keyId, operator)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
  })

  it('a key that a process has used is refused once it is deleted', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    await store.revokeKey(sender.keyId, operator)
    advance(31 * day)
    for (let step = 0; step < 50; step++) await store.maintain()
    assert.deepEqual(await store.listKeys(sender.app.id), [])
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
  })

  it('a key stops at its expiry, an app when it is disabled or deleted', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const hash = hashDeliveryKey(newDeliveryKey())
    await store.createKey({ app: sender.app.id, hash, name: 'short', expiresAt: store.now() + 1000 }, operator)
    const short = { ...sender, keyHash: hash }
    assert.equal((await store.enqueue(request(store, short))).kind, 'queued')
    advance(1000)
    assert.equal((await store.enqueue(request(store, short))).kind, 'invalid_key')
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
    const enabled = await updateApp(store, sender.app.id, { status: 'active' })
    assert.equal((await store.enqueue(request(store, sender, { version: enabled.version }))).kind, 'queued')
    assert.equal(await store.deleteApp(sender.app.id, operator), 'active')
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    assert.equal(await store.deleteApp(sender.app.id, operator), 'deleted')
    assert.equal(await store.deleteApp(sender.app.id, operator), null)
    assert.equal((await store.enqueue(request(store, sender))).kind, 'invalid_key')
    assert.equal(await store.findApp('a'), null)
  })

  it('an email without a key is queued for its app, and shares one limit with others of its app alone', async (_t, {
    store,
  }) => {
    const [a, b] = [await newSender(store, 'a', { keyPerMinute: 2 }), await newSender(store, 'b')]
    const keyless = (sender: Sender) => ({ appId: sender.app.id, judged: request(store, sender).judged })
    const results = await Promise.all(
      [a, b, a, b, a].map((sender) => store.enqueue(keyless(sender))), // one group, two apps
    )
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ['queued', 'queued', 'queued', 'queued', 'key_rate_limited'],
    )
    assert.equal((await store.enqueue(request(store, a))).kind, 'queued', 'keys have limits of their own')
    const emails = (await store.listEmails({ limit: 10 })).items
    const counted = emails.map(({ app, key }) => `${app === a.app.id ? 'a' : 'b'} ${key === null ? '-' : key}`)
    assert.deepEqual(counted.toSorted(), ['a -', 'a -', `a ${a.keyId}`, 'b -', 'b -'].toSorted())
    const [first] = await claim(store)
    assert.ok(first)
    await store.recordOutcome(first, delivered)
    assert.equal((await store.findEmail(first.emailId))?.key, null, 'the record has no key either')

    const stale = await store.enqueue({ appId: b.app.id, judged: null })
    assert.equal(stale.kind, 'judge_again')
    await store.updateApp(b.app.id, { status: 'disabled' }, operator)
    assert.equal((await store.enqueue(keyless(b))).kind, 'invalid_key')
    assert.equal((await store.enqueue({ ...keyless(b), appId: newId('app', 0) })).kind, 'invalid_key')
  })

  it('slugs are unique, and free again once their app is deleted', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    assert.equal(await store.createApp('a', testSettings, operator), null)
    await deleteApp(store, app.id)
    assert.ok(await store.createApp('a', testSettings, operator))
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

export function limits(it: It): void {
  it('each key of an app has a limit of its own', async (_t, { store }) => {
    const one = await newSender(store, 'a', { keyPerMinute: 2 })
    const hash = hashDeliveryKey(newDeliveryKey())
    await newKey(store, { app: one.app.id, hash, name: 'two', expiresAt: null })
    const two = { ...one, keyHash: hash }
    const answers = async (sender: Sender, count: number) =>
      Promise.all(Array.from({ length: count }, async () => (await store.enqueue(request(store, sender))).kind))
    assert.deepEqual(await answers(one, 3), ['queued', 'queued', 'key_rate_limited'])
    assert.deepEqual(await answers(two, 3), ['queued', 'queued', 'key_rate_limited'])
  })

  it('every request charges its key, valid or not, exactly', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { keyPerMinute: 5 })
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, i) => store.enqueue(i % 2 === 0 ? refusal(sender) : request(store, sender))),
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
    assert.deepEqual(kinds(await Promise.all(['Ada@x.org', 'ada@x.org', 'ADA@x.org', 'ada@x.org'].map(post))), {
      queued: 3,
      recipient_rate_limited: 1,
    })
    assert.equal((await post('bob@x.org')).kind, 'queued')
    advance(20 * 60_000)
    assert.equal((await post('ada@x.org')).kind, 'queued')
    assert.equal((await post('ada@x.org')).kind, 'recipient_rate_limited')
  })

  it('tags and the dots of Gmail share a bucket of five times the limit', async (_t, { store }) => {
    const senders = [
      await newSender(store, 'a', { recipientPerHour: 2 }),
      await newSender(store, 'b', { recipientPerHour: 2 }),
    ] as const
    const ask = (sender: Sender, i: number) => store.enqueue(request(store, sender, { to: `a.da+${i}@gmail.com` }))
    const inTurn = []
    for (let i = 0; i < 12; i++) inTurn.push(await ask(senders[0], i))
    const atOnce = await Promise.all(Array.from({ length: 12 }, (_, i) => ask(senders[1], i)))
    for (const results of [inTurn, atOnce]) assert.deepEqual(kinds(results), { queued: 10, recipient_rate_limited: 2 })
  })

  it('row 18: a clock that steps back a day locks no key and no recipient out', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 3 })
    advance(day)
    assert.equal((await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'queued')
    advance(-day)
    const results = [1, 2, 3, 4].map(() => store.enqueue(request(store, sender, { to: 'ada@x.org' })))
    assert.deepEqual(kinds(await Promise.all(results)), { queued: 3, recipient_rate_limited: 1 })
  })

  it('the limits of one app are not those of another', async (_t, { store }) => {
    const [one, two] = [
      await newSender(store, 'a', { recipientPerHour: 1 }),
      await newSender(store, 'b', { recipientPerHour: 1 }),
    ]
    assert.equal((await store.enqueue(request(store, one, { to: 'ada@x.org' }))).kind, 'queued')
    assert.equal((await store.enqueue(request(store, two, { to: 'ada@x.org' }))).kind, 'queued')
    assert.equal((await store.enqueue(request(store, one, { to: 'ada@x.org' }))).kind, 'recipient_rate_limited')
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
      assert.equal((await store.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'recipient_rate_limited')
    assert.equal((await store.enqueue(request(store, sender, { to: 'bob@x.org' }))).kind, 'queued')
    for (let i = 0; i < 3; i++)
      assert.equal((await store.enqueue(request(store, sender, { to: 'cy@x.org' }))).kind, 'daily_limit_reached')
    await store.updateApp(
      sender.app.id,
      {
        settings: { ...sender.app.settings, limits: { ...sender.app.settings.limits, daily: 3 } },
      },
      operator,
    )
    const app = await store.findApp('a')
    assert.equal(
      (await store.enqueue(request(store, sender, { to: 'cy@x.org', version: app?.version ?? 0 }))).kind,
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
    assert.equal((await third.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'recipient_rate_limited')
  })

  it(
    'row 19: a full queue refuses, charges no email limit, and takes mail again when there is room',
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
    const [today] = await store.readUsage(sender.app.id)
    assert.equal(today?.day, new Date(store.now()).toISOString().slice(0, 10))
    assert.deepEqual({ ...today?.counts }, { accepted: 1, delivered: 1, invalid_url: 1, recipient_rate_limited: 1 })
  })
}

export function groups(it: It): void {
  it('row 14: a call at fault fails alone, and the others of its group succeed', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const first = request(store, sender)
    const calls = [first, request(store, sender), first, request(store, sender)]
    const settled = await Promise.allSettled(calls.map((call) => store.enqueue(call)))
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    )
    assert.equal((await store.readQueueGauge()).depth, 3)
    assert.equal((await claim(store)).length, 3)
  })

  it('copies of one request in one group: one is queued, the others replay it', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const results = await Promise.all(
      Array.from({ length: 5 }, () => store.enqueue(request(store, sender, { idem: 'k' }))),
    )
    const ids = new Set(results.map((result) => 'emailId' in result && result.emailId))
    assert.deepEqual([kinds(results), ids.size], [{ queued: 1, replayed: 4 }, 1])
  })
}

export function idempotency(it: It): void {
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
    assert.equal((await store.readQueueGauge()).depth, 2)
  })

  it('row 16: racing copies queue one email', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    const other = await reopen()
    atEnd(t, () => other.close())
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        (i % 2 === 0 ? store : other).enqueue(request(store, sender, { idem: 'k' })),
      ),
    )
    assert.deepEqual(kinds(results), { queued: 1, replayed: 29 })
    assert.equal((await store.readQueueGauge()).depth, 1)
  })

  it(
    'a replay is answered though the queue is full and the limits reached, and charges none of them',
    async (_t, { store }) => {
      const sender = await newSender(store, 'a', { recipientPerHour: 1, daily: 1 })
      const copy = () => store.enqueue(request(store, sender, { to: 'ada@x.org', idem: 'k' }))
      assert.equal((await copy()).kind, 'queued')
      for (let i = 0; i < 5; i++) assert.equal((await copy()).kind, 'replayed')
      assert.equal(
        (await store.enqueue(refusal(sender, { key: 'k', bodyDigest: 'digest' }))).kind,
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
    await store.enqueue(refusal(sender, { key: 'k', bodyDigest: 'x' }))
    assert.equal((await store.enqueue(request(store, sender, { idem: 'k' }))).kind, 'queued')
    advance(day)
    assert.equal((await store.enqueue(request(store, sender, { idem: 'k', body: 'other' }))).kind, 'queued')
  })

  it('maintenance keeps the idempotency keys that are younger than a day', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const ask = async (idem: string) => (await store.enqueue(request(store, sender, { idem }))).kind
    await ask('old')
    advance(day / 2)
    await ask('young')
    advance(day / 2 + 1000)
    while ((await store.maintain()).more);
    assert.deepEqual([await ask('young'), await ask('old')], ['replayed', 'queued'])
  })
}
