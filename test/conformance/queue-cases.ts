/** Conformance: claims, outcomes, leases, fairness, sealing and maintenance. */
import assert from 'node:assert/strict'
import { appsPerClaim } from '../../src/domain/bounds.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { noReply } from '../../src/domain/delivery/reply.ts'
import { lostLeaseWaitMs, suspectAfter } from '../../src/domain/delivery/states.ts'
import { newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { leaseMs, type Store } from '../../src/store/store.ts'
import { deleteApp, listEmails, operator } from '../support/operator.ts'
import { atEnd } from '../support/temporary.ts'
import { repeat } from '../support/wait.ts'
import { claim, day, deferred, delivered, type It, kinds, newSender, request, type Sender } from './subject.ts'

export function queue(it: It): void {
  it('row 2: what was queued is claimed once, with its content, oldest first', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      const result = await store.enqueue(request(store, sender, { to: `n${i}@x.org` }))
      if (result.kind === 'queued') ids.push(result.emailId)
    }
    const { claims, apps } = await store.claimDue({ max: 3, perApp: 10, leases: [] })
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
    assert.equal(record.trail.at(-1)?.reply?.text, '250 ok')
    assert.deepEqual(await store.readQueueGauge(), { depth: 0, oldestAcceptedAt: null, firstExpiresAt: null })
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

  it('a reply is kept, whatever a relay puts into it', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    const reply = { code: 451, enhanced: null, text: `451 "\\u0000" \u0000 \u001b \ud83d` }
    assert.equal(await store.recordOutcome(held, { ...deferred(1000), reply } as DeliveryOutcome), true)
    const record = await store.findEmail(held.emailId)
    assert.deepEqual(record?.trail.at(-1)?.reply, { ...reply, text: '451 "\\u0000"  \u001b \ufffd' })
  })

  it('an attempt that was not made is given back', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, {
      kind: 'unattempted',
      relay: null,
      reply: noReply('the worker stopped'),
      waitMs: 0,
    })
    assert.equal((await store.findEmail(held.emailId))?.state, 'queued')
    assert.equal((await claim(store))[0]?.attempt, 1)
  })

  it('row 33: an expired email is never handed out, queued or deferred', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender, { lifeMs: 10_000 }))
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, deferred(60_000))
    const second = await store.enqueue(request(store, sender, { lifeMs: 10_000 }))
    advance(10_500) // the estimate of the database’s clock may be some milliseconds ahead
    assert.deepEqual(await claim(store), [])
    assert.equal((await store.findEmail(held.emailId))?.state, 'expired')
    assert.equal(second.kind === 'queued' && (await store.findEmail(second.emailId))?.state, 'expired')
    assert.equal((await store.readQueueGauge()).depth, 0)
  })

  it('retry makes a deferred email due, cancel ends one, and neither touches the rest', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    const { emailId } = held
    assert.equal(await store.retryEmail(emailId, operator), 'sending')
    assert.equal(await store.cancelEmail(emailId, operator), 'sending')
    await store.recordOutcome(held, deferred(600_000))
    assert.equal(await store.retryEmail(emailId, operator), 'done')
    assert.equal(await store.retryEmail(emailId, operator), 'not_deferred')
    assert.equal(await store.cancelEmail(emailId, operator), 'done')
    assert.equal(await store.cancelEmail(emailId, operator), 'finished')
    assert.equal(await store.retryEmail(newId('em', 0), operator), 'not_found')
    assert.equal((await store.findEmail(emailId))?.state, 'cancelled')
  })

  it('a list that is made while emails finish names each once', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    for (let i = 0; i < 100; i++) await store.enqueue(request(store, sender))
    const claims = await claim(store, 100)
    const finished = (async () => {
      for (const held of claims) await store.recordOutcome(held, delivered)
    })()
    let states: readonly string[]
    do {
      const list = await listEmails(store, { limit: 1000 })
      assert.equal(new Set(list.map((email) => email.id)).size, 100)
      assert.equal(list.length, 100)
      states = list.map((email) => email.state)
      await new Promise(setImmediate)
    } while (states.includes('sending'))
    await finished
  })

  it('emails are found by app, state and recipient, newest first', async (_t, { store }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await store.enqueue(request(store, one, { to: 'ada@x.org' }))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    await store.enqueue(request(store, one, { to: 'Ada@x.org' }))
    await store.enqueue(request(store, two, { to: 'bob@x.org' }))
    const list = async (query: Partial<Parameters<Store['listEmails']>[0]>) =>
      (await listEmails(store, { limit: 50, ...query })).map((email) => email.state)
    assert.deepEqual(await list({}), ['queued', 'queued', 'delivered'])
    assert.deepEqual(await list({ limit: 1 }), ['queued'])
    assert.deepEqual(await list({ recipient: store.nameRecipient('ADA@x.org' as EmailAddress) }), [
      'queued',
      'delivered',
    ])
    assert.deepEqual(await list({ app: two.app.id }), ['queued'])
    assert.deepEqual(await list({ state: 'delivered' }), ['delivered'])
    assert.deepEqual(await list({ state: 'failed' }), [])
    const summary = await store.summariseQueue()
    assert.equal(summary.depth, 2)
    assert.equal(summary.counts.length, 2)
  })
}

export function leases(it: It): void {
  it('row 30: only the holder of the lease records an outcome', async (_t, { store, advance }) => {
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

  it('row 23: a renewed lease holds; a lost one is reported', async (_t, { store, advance }) => {
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
    assert.deepEqual(
      (await store.renewLeases([held])).map(({ emailId, fence }) => [emailId, fence]),
      [[held.emailId, held.fence]],
    )
  })

  it('row 18: a worker’s own mail stays its own over a pause or a clock step', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    for (const jump of [2 * leaseMs, -day, day]) {
      advance(jump)
      assert.deepEqual((await store.claimDue({ max: 9, perApp: 9, leases: [held] })).claims, [])
    }
    assert.equal(await store.recordOutcome(held, delivered), true)
  })

  it('row 18: a clock that steps back a day holds neither leases nor waits', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    advance(day)
    for (let i = 0; i < 2; i++) await store.enqueue(request(store, sender, { lifeMs: 3 * day }))
    const [crashed, waiting] = await claim(store)
    assert.ok(crashed && waiting)
    await store.recordOutcome(waiting, deferred(5000))
    advance(-day)
    assert.equal((await claim(store)).length, 2)
  })

  it('row 18: a clock that steps back by a moment takes no lease away', async (t, { store, reopen, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    advance(-1000)
    const other = await reopen()
    atEnd(t, () => other.close())
    assert.deepEqual(await claim(other), [])
    assert.equal(await store.recordOutcome(held, delivered), true)
  })

  it('row 31: ordinary mail goes between two suspects', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await queueSuspects(store, sender, advance)
    for (let i = 0; i < 2; i++) await store.enqueue(request(store, sender, { lifeMs: day }))
    const turns: boolean[] = []
    for (let i = 0; i < 4; i++) turns.push((await claim(store, 1))[0]?.isSuspect ?? false)
    assert.deepEqual(turns, [true, false, true, false])
  })

  it('row 31: suspects between them do not change the turns of the apps', async (_t, { store, advance }) => {
    const senders = [await newSender(store, 'a'), await newSender(store, 'b'), await newSender(store, 'c')]
    await queueSuspects(store, await newSender(store, 'z'), advance)
    for (const sender of senders)
      for (let i = 0; i < 2; i++) await store.enqueue(request(store, sender, { lifeMs: day }))
    const turns: (string | undefined)[] = []
    for (let i = 0; i < 6; i++) {
      const [held] = await claim(store, 1)
      if (held?.isSuspect === false) turns.push(held.appId)
    }
    assert.deepEqual(
      turns,
      senders.map(({ app }) => app.id),
    )
  })

  // On SQLite the second one stands by.
  it('row 30: two workers never hold the same email', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a')
    await Promise.all(Array.from({ length: 60 }, () => store.enqueue(request(store, sender))))
    const other = await reopen()
    atEnd(t, () => other.close())
    const claims = (
      await Promise.all(Array.from({ length: 24 }, (_, i) => claim(i % 2 === 0 ? store : other, 5)))
    ).flat()
    assert.equal(claims.length, 60)
    assert.equal(new Set(claims.map((held) => held.emailId)).size, 60)
  })

  it('row 31: an email that lost several leases is tried alone; lost leases are not attempts', async (_t, {
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
    await waitAsSuspects(store, advance)
    const held = [{ emailId: newId('em', 0), fence: 1, appId: sender.app.id }]
    const busy = await store.claimDue({ max: 10, perApp: 10, leases: held })
    assert.equal(busy.suspects, true)
    const suspects = await listEmails(store, { app: sender.app.id, state: 'queued', limit: 9 })
    assert.equal(suspects.length, 1, 'a list of an app has its suspects')
    await store.enqueue(request(store, sender, { lifeMs: day }))
    assert.ok(busy.claims.every((held) => held.emailId !== poison.emailId && !held.isSuspect))
    const alone = await store.claimDue({ max: 10, perApp: 10, leases: held, takeSuspect: true })
    assert.equal(alone.suspects, false)
    assert.deepEqual(
      alone.claims.map((held) => [held.emailId, held.isSuspect, held.attempt]),
      [[poison.emailId, true, 1]],
    )
  })
}

/** Three suspects that are due. */
export async function queueSuspects(store: Store, sender: Sender, advance: (byMs: number) => void): Promise<void> {
  for (let i = 0; i < 3; i++) await store.enqueue(request(store, sender, { lifeMs: day }))
  for (let i = 0; i < 2; i++) {
    await claim(store)
    advance(leaseMs)
  }
  await waitAsSuspects(store, advance)
}

/** Takes the lapsed leases back. An email becomes a suspect with that, and waits before it is tried again. */
async function waitAsSuspects(store: Store, advance: (byMs: number) => void): Promise<void> {
  assert.deepEqual(
    (await claim(store)).filter(({ isSuspect }) => isSuspect),
    [],
  )
  advance(lostLeaseWaitMs(suspectAfter))
}

export function fairness(it: It): void {
  it('row 35: one app’s flood does not stand before another’s email', async (_t, { store }) => {
    const [flood, small] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await repeat(200, () => store.enqueue(request(store, flood)))
    await store.enqueue(request(store, small))
    const claims = await claim(store, 10)
    assert.equal(claims.filter((held) => held.appId === small.app.id).length, 1)
    assert.equal(claims.length, 10)
  })

  it('apps take turns when there are more of them than places', async (_t, { store }) => {
    const senders = await Promise.all(Array.from({ length: 6 }, (_, i) => newSender(store, `s${i}`)))
    for (const sender of senders) await Promise.all([1, 2, 3].map(() => store.enqueue(request(store, sender))))
    const turns: string[] = []
    for (let i = 0; i < 6; i++) turns.push(...(await claim(store, 2)).map((held) => held.appId))
    assert.equal(new Set(turns.slice(0, 6)).size, 6, 'each once before any twice')
    const firstTwelve = kinds(turns.map((kind) => ({ kind })))
    assert.deepEqual(Object.values(firstTwelve), [2, 2, 2, 2, 2, 2])
  })

  it('a claim that could not look at all apps says that there may be more', async (_t, { store }) => {
    for (let n = 0; n <= appsPerClaim; n++) await store.enqueue(request(store, await newSender(store, `s${n}`)))
    const take = async () => {
      const { claims, more } = await store.claimDue({ max: 256, perApp: 1, leases: [] })
      return [claims.length, more]
    }
    assert.deepEqual([await take(), (await take())[0], await take()], [[appsPerClaim, true], 1, [0, false]])
  })

  it('an app that may not have more in a worker takes no place from another', async (_t, { store }) => {
    const [busy, other] = [await newSender(store, 'a'), await newSender(store, 'b')]
    for (const sender of [busy, busy, other, other]) await store.enqueue(request(store, sender))
    const [held] = await claim(store, 2)
    assert.equal(held?.appId, busy.app.id, 'whose turn it is again')
    const { claims } = await store.claimDue({ max: 1, perApp: 1, leases: [held] })
    assert.deepEqual(
      claims.map(({ appId }) => appId),
      [other.app.id],
    )
  })

  it('no app holds more than its share of a worker', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await Promise.all(Array.from({ length: 20 }, () => store.enqueue(request(store, sender))))
    const { claims } = await store.claimDue({
      max: 10,
      perApp: 4,
      leases: [{ emailId: newId('em', 0), fence: 1, appId: sender.app.id }],
    })
    assert.equal(claims.length, 3)
  })

  it('row 34: a suspect of an app that is disabled for seven days is cancelled too', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const other = await newSender(store, 'b')
    const queued = await store.enqueue(request(store, sender, { lifeMs: 30 * day }))
    for (let lost = 0; lost < suspectAfter; lost++) {
      await claim(store)
      advance(leaseMs)
    }
    await waitAsSuspects(store, advance)
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    await store.enqueue(request(store, other))
    await claim(store) // makes the deferred suspect due
    advance(7 * day)
    while ((await store.maintain()).more);
    assert.equal(queued.kind === 'queued' && (await store.findEmail(queued.emailId))?.state, 'cancelled')
  })

  it('row 34: mail of a disabled app is held, and cancelled after seven days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    const result = await store.enqueue(request(store, sender, { lifeMs: 30 * day }))
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    assert.deepEqual(await claim(store), [])
    await store.updateApp(sender.app.id, { status: 'active' }, operator)
    const [held] = await claim(store)
    assert.ok(held)
    await store.recordOutcome(held, deferred(1000))
    await store.updateApp(sender.app.id, { status: 'disabled' }, operator)
    advance(7 * day - 1000)
    while ((await store.maintain()).more);
    assert.deepEqual(await claim(store), [])
    assert.equal((await store.readQueueGauge()).depth, 1)
    advance(2000)
    while ((await store.maintain()).more);
    assert.equal(result.kind === 'queued' && (await store.findEmail(result.emailId))?.state, 'cancelled')
  })

  it('row 21: a backlog that has expired stands before nobody', async (_t, { store, advance }) => {
    const senders = await Promise.all(Array.from({ length: 40 }, (_, i) => newSender(store, `s${i}`)))
    const expiring = senders.flatMap((sender) => Array.from({ length: 30 }, () => sender))
    const enqueue = (sender: (typeof senders)[number]) => store.enqueue(request(store, sender, { lifeMs: 60_000 }))
    await repeat(expiring.length, (n) => enqueue(expiring[n] ?? assert.fail()))
    const live = await newSender(store, 'live')
    await store.enqueue(request(store, live, { lifeMs: day }))
    advance(60_000)
    const claims: string[] = []
    for (let i = 0; i < 20 && claims.length === 0; i++) claims.push(...(await claim(store)).map((held) => held.appId))
    assert.deepEqual(claims, [live.app.id])
  })

  it('only mail of an app that is gone is cancelled', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    assert.deepEqual(await store.cancelDeletedAppMail(sender.app.id), [])
    assert.equal((await store.readQueueGauge()).depth, 1)
  })

  it('row 34: mail of a revoked key is still sent', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    await store.revokeKey(sender.keyId, operator)
    assert.equal((await claim(store)).length, 1)
  })

  it('row 34: deleting an app cancels its mail; what a worker holds ends by its outcome', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await repeat(1200, () => store.enqueue(request(store, sender)))
    const [arrives, waits, ...others] = await claim(store, 4)
    assert.ok(arrives && waits)
    await store.recordOutcome(waits, deferred(3_600_000))
    await deleteApp(store, sender.app.id)
    while ((await store.maintain()).more);
    assert.equal((await store.readQueueGauge()).depth, 3)
    assert.equal((await store.findEmail(waits.emailId))?.state, 'cancelled', 'deferred mail is cancelled too')
    assert.equal(await store.recordOutcome(arrives, delivered), true, 'the relay has it')
    assert.equal((await store.findEmail(arrives.emailId))?.state, 'delivered')
    for (const held of others) await store.recordOutcome(held, deferred(3_600_000))
    while ((await store.maintain()).more);
    assert.equal((await store.findEmail(others[0]?.emailId ?? waits.emailId))?.state, 'cancelled')
    assert.equal((await store.readQueueGauge()).depth, 0)
  })
}
