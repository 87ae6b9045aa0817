/** Conformance: an email cancels the older one of its kind that still waits. */
import assert from 'node:assert/strict'
import type { EmailId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { claim, day, deferred, type It, request, type Sender } from './subject.ts'
import { ada, bob, clear, clockMs, hour, type SharedCases, share, suppress } from './suppression-subject.ts'

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
  'an older email that waits is cancelled; its content goes, it is counted, and only the newest is claimed':
    async ({ store, newSender }) => {
      const sender = await newSender()
      const sent = []
      for (let n = 0; n < 5; n++) sent.push(await queue(store, sender))
      assert.deepEqual(
        sent.map(({ superseded }) => superseded),
        [null, ...sent.slice(0, -1).map(({ id }) => id)],
      )
      for (const { id } of sent.slice(0, -1)) assert.equal(await stateOf(store, id), 'cancelled superseded')
      assert.equal((await store.readQueueGauge()).depth, 1)
      assert.deepEqual(
        (await claim(store)).map(({ emailId }) => emailId),
        [sent[4]?.id],
      )
      assert.deepEqual((await store.readUsageToday()).get(sender.app.id), { accepted: 5, cancelled: 4 })
    },

  'of those that are asked for at once, one stays': async ({ store, newSender }) => {
    const sender = await newSender()
    const [first, second] = await Promise.all([queue(store, sender), queue(store, sender)])
    assert.deepEqual([first.superseded, second.superseded], [null, first.id])
    assert.equal((await store.readQueueGauge()).depth, 1)
  },

  'those that are asked for at once are kept apart': async ({ store, newSender }) => {
    const [acme, other] = [await newSender(), await newSender()]
    const { id: before } = await queue(store, acme)
    const asked: [Sender, Asked][] = [
      [acme, { idem: 'once' }],
      [acme, { to: bob }],
      [other, {}],
      [acme, {}],
      [acme, { supersedeKey: 'verify' }],
      [acme, { to: bob }],
    ]
    const replay = { to: ada, supersedeKey: 'reset', idem: 'once' }
    const keyless = () => store.enqueue(request(store, acme, { to: ada }))
    const queued = asked.slice(0, 3).map(([sender, more]) => queue(store, sender, more))
    const others = [store.enqueue(request(store, acme, replay)), keyless(), keyless()]
    queued.push(...asked.slice(3).map(([sender, more]) => queue(store, sender, more)))
    const results = await Promise.all(queued)
    const [first, bobs] = results
    assert.deepEqual(
      results.map(({ superseded }) => superseded),
      [before, null, null, first?.id, null, bobs?.id],
    )
    const kinds = (await Promise.all(others)).map(
      (result) => `${result.kind} ${'superseded' in result && result.superseded}`,
    )
    assert.deepEqual(kinds, ['replayed false', 'queued null', 'queued null'])
    assert.equal((await claim(store)).length, 6)
  },

  'another app, recipient or kind of link, and one without any, supersede nothing': async ({
    store,
    newSender,
  }) => {
    const [acme, other] = [await newSender(), await newSender()]
    const { id } = await queue(store, acme)
    await queue(store, other)
    await queue(store, acme, { to: bob })
    await queue(store, acme, { supersedeKey: 'verify' })
    for (let n = 0; n < 2; n++)
      assert.equal((await store.enqueue(request(store, acme, { to: ada }))).kind, 'queued')
    assert.equal(await stateOf(store, id), 'queued null')
    assert.equal((await store.readQueueGauge()).depth, 6)
  },

  'one that a worker has is never cancelled; one that is deferred is': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender()
    const { id } = await queue(store, sender)
    const [held] = await claim(store)
    assert.ok(held?.emailId === id)
    const second = await queue(store, sender)
    assert.equal(second.superseded, null)
    assert.equal(await store.recordOutcome(held, deferred(5000)), true)
    const third = await queue(store, sender)
    assert.deepEqual([third.superseded, await stateOf(store, id)], [second.id, 'deferred null'])
    const [next] = await claim(store)
    assert.ok(next?.emailId === third.id && (await store.recordOutcome(next, deferred(5000))))
    const fourth = await queue(store, sender)
    assert.equal(fourth.superseded, third.id)
    advance(5000 + clockMs)
    assert.deepEqual(
      (await claim(store)).map(({ emailId }) => emailId).toSorted(),
      [id, fourth.id].toSorted(),
    )
  },

  'one that is refused, replayed or suppressed supersedes nothing, and is not remembered': async ({
    store,
    advance,
    newSender,
  }) => {
    const sender = await newSender({ recipientPerHour: 2 })
    const { id } = await queue(store, sender, { idem: 'once' })
    const ask = async (more: Asked) =>
      (await store.enqueue(request(store, sender, { to: ada, supersedeKey: 'reset', ...more }))).kind
    const second = await queue(store, sender, { lifeMs: day })
    assert.equal(second.superseded, id)
    assert.equal(await ask({}), 'recipient_rate_limited')
    assert.equal(await ask({ idem: 'once' }), 'replayed')
    await suppress(store, sender, ada)
    advance(hour)
    const asked = [ask({}), ask({}), ask({ to: bob }), ask({ to: bob })]
    assert.deepEqual(await Promise.all(asked), ['suppressed', 'suppressed', 'queued', 'queued'])
    assert.equal(await stateOf(store, second.id), 'queued null')
    await clear(store)
    advance(hour)
    assert.equal((await queue(store, sender)).superseded, second.id)
  },

  'another process remembers nothing: the older email is sent as well': async ({
    store,
    newSender,
    reopen,
  }) => {
    const sender = await newSender()
    const { id } = await queue(store, sender)
    const other = await reopen()
    const second = await queue(other, sender)
    assert.equal(second.superseded, null)
    assert.equal((await queue(store, sender)).superseded, id)
    assert.equal((await claim(store)).length, 2)
  },

  'requests and claims at once: each email ends once, as sent or as superseded': async ({
    store,
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
        if (each.superseded !== null) superseded.push(each.superseded)
      }
      for (const { emailId } of await claimed) sent.add(emailId)
    }
    for (const { emailId } of await claim(store, 100)) sent.add(emailId)
    assert.equal(new Set(superseded).size, superseded.length)
    assert.deepEqual([...sent, ...superseded].toSorted(), asked.toSorted())
  },
}

export function supersedes(it: It): void {
  it('a newer email supersedes an older one', share(cases))
}
