/** Conformance: an email cancels the older one of its kind that still waits. */
import assert from 'node:assert/strict'
import { supersededAfterMs } from '../../src/domain/bounds.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { claim, day, deferred, delivered, type It, request, type Sender } from './subject.ts'
import { ada, bob, clear, hour, type SharedCases, share, suppress } from './suppression-subject.ts'

type Asked = Parameters<typeof request>[2]

/** Queues an email of the kind `reset`, and says which email it superseded. */
async function queue(store: Store, sender: Sender, asked: Asked = {}) {
  const result = await store.enqueue(request(store, sender, { to: ada, supersedeKey: 'reset', ...asked }))
  assert.ok(result.kind === 'queued', result.kind)
  return { id: result.emailId, superseded: result.superseded }
}

const stateOf = async (store: Store, id: EmailId) => {
  const email = await store.findEmail(id)
  return `${email?.state} ${email?.reason}`
}

const cases: SharedCases = {
  'an older email that waits is cancelled; its content goes, it is counted, and only the newest is claimed': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender()
    const sent = []
    for (let n = 0; n < 5; n++) {
      sent.push(await queue(store, sender))
      advance(supersededAfterMs)
    }
    assert.deepEqual(
      sent.map(({ superseded }) => superseded),
      [[], ...sent.slice(0, -1).map(({ id }) => [id])],
    )
    for (const { id } of sent.slice(0, -1)) assert.equal(await stateOf(store, id), 'cancelled superseded')
    assert.equal((await store.readQueueGauge()).depth, 1)
    assert.deepEqual(
      (await claim(store)).map(({ emailId }) => emailId),
      [sent[4]?.id],
    )
    assert.deepEqual((await store.readUsageToday(null)).get(sender.app.id), { accepted: 5, cancelled: 4 })
  },

  'emails that have not waited for long stay; the next one supersedes them all': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender()
    const burst = await Promise.all(Array.from({ length: 3 }, () => queue(store, sender)))
    advance(supersededAfterMs / 2)
    burst.push(await queue(store, sender))
    assert.deepEqual(
      burst.map(({ superseded }) => superseded),
      [[], [], [], []],
    )
    advance(supersededAfterMs / 2)
    const next = await queue(store, sender)
    assert.deepEqual(
      next.superseded.toSorted(),
      burst
        .slice(0, 3)
        .map(({ id }) => id)
        .toSorted(),
    )
    advance(supersededAfterMs)
    assert.deepEqual((await queue(store, sender)).superseded.toSorted(), [burst[3]?.id, next.id].toSorted())
    assert.equal((await store.readQueueGauge()).depth, 1)
  },

  'of a long burst the newest eight are remembered': async ({ store, advance, newSender }) => {
    const sender = await newSender({ recipientPerHour: 100 })
    const burst = []
    for (let n = 0; n < 10; n++) burst.push((await queue(store, sender)).id)
    advance(supersededAfterMs)
    assert.deepEqual((await queue(store, sender)).superseded.toSorted(), burst.slice(2).toSorted())
    assert.equal((await claim(store)).length, 3)
  },

  'requests at once are kept apart': async ({ store, advance, newSender }) => {
    const [acme, other] = [await newSender(), await newSender()]
    const { id: before } = await queue(store, acme, { idem: 'once' })
    const { id: bobs } = await queue(store, acme, { to: bob })
    advance(supersededAfterMs)
    const replay = { to: ada, supersedeKey: 'reset', idem: 'once' }
    const others = [store.enqueue(request(store, acme, replay)), store.enqueue(request(store, acme, { to: ada }))]
    const asked: [Sender, Asked][] = [
      [other, {}],
      [acme, { supersedeKey: 'verify' }],
      [acme, {}],
      [acme, { to: bob }],
      [acme, {}],
    ]
    const results = await Promise.all(asked.map(([sender, more]) => queue(store, sender, more)))
    assert.deepEqual(
      results.map(({ superseded }) => superseded),
      [[], [], [before], [bobs], []],
    )
    const kinds = (await Promise.all(others)).map(({ kind }) => kind)
    assert.deepEqual(kinds, ['replayed', 'queued'])
    assert.equal((await claim(store)).length, 6)
  },

  'another app, recipient or kind of link, and one without any, supersede nothing': async ({
    store,
    advance,
    newSender,
  }) => {
    const [acme, other] = [await newSender(), await newSender()]
    const { id } = await queue(store, acme)
    advance(supersededAfterMs)
    await queue(store, other)
    await queue(store, acme, { to: bob })
    await queue(store, acme, { supersedeKey: 'verify' })
    for (let n = 0; n < 2; n++) assert.equal((await store.enqueue(request(store, acme, { to: ada }))).kind, 'queued')
    assert.equal(await stateOf(store, id), 'queued null')
    assert.equal((await store.readQueueGauge()).depth, 6)
  },

  'one that lives longer than the newer one stays': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    const { id } = await queue(store, sender, { lifeMs: 900_000 })
    advance(supersededAfterMs)
    assert.deepEqual((await queue(store, sender, { lifeMs: 60_000 })).superseded, [])
    advance(supersededAfterMs)
    const last = await queue(store, sender, { lifeMs: 900_000 })
    assert.equal(last.superseded.length, 2)
    assert.ok(last.superseded.includes(id))
  },

  'one that a worker has is never cancelled; one that is deferred is': async ({ store, advance, newSender }) => {
    const sender = await newSender()
    const { id } = await queue(store, sender)
    advance(supersededAfterMs)
    const [held] = await claim(store)
    assert.ok(held?.emailId === id)
    const second = await queue(store, sender)
    assert.deepEqual(second.superseded, [])
    assert.equal(await store.recordOutcome(held, deferred(5000)), true)
    advance(supersededAfterMs)
    const third = await queue(store, sender)
    assert.deepEqual(third.superseded.toSorted(), [id, second.id].toSorted())
    assert.deepEqual(
      (await claim(store)).map(({ emailId }) => emailId),
      [third.id],
    )
    assert.equal((await store.readQueueGauge()).depth, 1)
  },

  'one that is refused, replayed or suppressed supersedes nothing': async ({ store, advance, newSender }) => {
    const sender = await newSender({ recipientPerHour: 2 })
    const { id } = await queue(store, sender, { idem: 'once' })
    advance(supersededAfterMs)
    const ask = async (more: Asked) =>
      (await store.enqueue(request(store, sender, { to: ada, supersedeKey: 'reset', lifeMs: day, ...more }))).kind
    const second = await queue(store, sender, { lifeMs: day })
    assert.deepEqual(second.superseded, [id])
    assert.equal(await ask({}), 'recipient_rate_limited')
    assert.equal(await ask({ idem: 'once' }), 'replayed')
    await suppress(store, sender, ada)
    advance(hour)
    const asked = [ask({}), ask({}), ask({ to: bob }), ask({ to: bob })]
    assert.deepEqual(await Promise.all(asked), ['suppressed', 'suppressed', 'queued', 'queued'])
    assert.equal(await stateOf(store, second.id), 'queued null')
    await clear(store)
    advance(hour)
    assert.deepEqual((await queue(store, sender, { lifeMs: day })).superseded, [second.id])
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
  },

  'another process remembers nothing: the older email is sent as well': async ({
    store,
    advance,
    newSender,
    reopen,
  }) => {
    const sender = await newSender()
    const { id } = await queue(store, sender)
    advance(supersededAfterMs)
    const other = await reopen()
    const second = await queue(other, sender)
    assert.deepEqual(second.superseded, [])
    assert.deepEqual((await queue(store, sender)).superseded, [id])
    assert.equal((await claim(store)).length, 2)
  },

  'requests and claims at once: each email is claimed or superseded, and never both': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender({ recipientPerHour: 1000 })
    const sent = new Set<EmailId>()
    const superseded: EmailId[] = []
    const asked = []
    for (let round = 0; round < 40; round++) {
      const queued = Array.from({ length: 3 }, () => queue(store, sender))
      const claimed = claim(store, 1)
      for (const each of await Promise.all(queued)) {
        asked.push(each.id)
        superseded.push(...each.superseded)
      }
      advance(supersededAfterMs)
      for (const { emailId } of await claimed) sent.add(emailId)
    }
    for (const { emailId } of await claim(store, 100)) sent.add(emailId)
    assert.equal(new Set(superseded).size, superseded.length)
    assert.ok(superseded.length >= 40)
    assert.deepEqual([...sent, ...superseded].toSorted(), asked.toSorted())
  },
}

export function supersedes(it: It): void {
  it('a newer email supersedes an older one', share(cases))
}
