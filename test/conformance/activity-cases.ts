/** Conformance: the counts behind charts, refusals, processes, and the measures of the queue. */
import assert from 'node:assert/strict'
import { activityDays, appMinutesKept, scanMax } from '../../src/domain/bounds.ts'
import { noReply } from '../../src/domain/delivery/reply.ts'
import { minuteMs } from '../../src/domain/duration.ts'
import { type AppId, type EmailId, idFloor, newId } from '../../src/domain/id.ts'
import type { ActivityEvent, ActivityRow } from '../../src/domain/operator/activity.ts'
import { nodeSilentMs } from '../../src/domain/operator/node.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { type RefusedRequest, refusalsMax } from '../../src/domain/request/refused-request.ts'
import type { RefusalQuery } from '../../src/store/activity-store.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { refusalsOf } from '../support/service.ts'
import { repeat } from '../support/wait.ts'
import { claim, day, deferred, type It, newSender, request, type Sender, updateApp } from './subject.ts'

const hour = 60 as const

const minuteOf = (store: Store): number => Math.floor(store.now() / minuteMs)

const row = (
  app: AppId | null,
  minute: number,
  event: ActivityEvent,
  count: number,
  span: ActivityRow['span'] = app === null ? 1 : hour,
): ActivityRow => ({ app, span, minute, event, count })

export function activity(it: It): void {
  it('counts of several processes add up, for the service and for each app', async (_t, { store }) => {
    const [a, b] = [newId('app', store.now()), newId('app', store.now())]
    const first = [row(null, 600, 'delivered', 2), row(a, 600, 'delivered', 2), row(b, 600, 'delivered', 9)]
    const second = [row(null, 600, 'delivered', 3), row(null, 659, 'delivered', 5), row(null, 660, 'expired', 1)]
    await Promise.all([store.addActivity(first), store.addActivity(second.toReversed())])
    const all = { apps: null, from: 600, to: 661 }
    assert.deepEqual(await store.readActivity({ ...all, step: 1 }), [
      { minute: 600, event: 'delivered', count: 5 },
      { minute: 659, event: 'delivered', count: 5 },
      { minute: 660, event: 'expired', count: 1 },
    ])
    assert.deepEqual(await store.readActivity({ ...all, step: hour }), [
      { minute: 600, event: 'delivered', count: 10 },
      { minute: 660, event: 'expired', count: 1 },
    ])
    assert.deepEqual(await store.readActivity({ apps: [a, b], from: 600, to: 601, step: hour }), [
      { minute: 600, event: 'delivered', count: 11 },
    ])
    assert.deepEqual(await store.readActivity({ ...all, from: 601, to: 659, step: 1 }), [])
  })

  it('what apps did lately is known by the minute, apart from their hours', async (_t, { store }) => {
    const [a, b] = [newId('app', store.now()), newId('app', store.now())]
    await store.addActivity([
      row(null, 600, 'delivered', 7),
      row(a, 600, 'delivered', 5),
      ...[row(a, 600, 'delivered', 2, 1), row(a, 601, 'delivered', 3, 1), row(b, 601, 'expired', 4, 1)],
    ])
    const minutes = { apps: [a], from: 600, to: 660, step: 1 } as const
    assert.deepEqual(await store.readActivity(minutes), [
      { minute: 600, event: 'delivered', count: 2 },
      { minute: 601, event: 'delivered', count: 3 },
    ])
    assert.deepEqual(await store.readActivity({ ...minutes, step: hour }), [
      { minute: 600, event: 'delivered', count: 5 },
    ])
    assert.deepEqual(await store.readAppActivity(600, 660), [
      { app: a, event: 'delivered', count: 5, first: 600, last: 601 },
      { app: b, event: 'expired', count: 4, first: 601, last: 601 },
    ])
    assert.deepEqual(await store.readAppActivity(600, 601), [
      { app: a, event: 'delivered', count: 2, first: 600, last: 600 },
    ])
    assert.deepEqual(await store.readAppActivity(602, 660), [])
  })

  it('counts are kept for eight days', async (_t, { store }) => {
    const [old, kept] = [minuteOf(store) - activityDays * 24 * hour - 1, minuteOf(store) - 24 * hour]
    await store.addActivity([row(null, old, 'delivered', 1), row(null, kept, 'delivered', 1)])
    await store.maintain()
    const rest = await store.readActivity({ apps: null, from: 0, to: minuteOf(store), step: 1 })
    assert.deepEqual(rest, [{ minute: kept, event: 'delivered', count: 1 }])
  })

  it('the minutes of an app are kept for two hours, its hours longer', async (_t, { store }) => {
    const app = newId('app', store.now())
    // A minute may pass before the records are deleted.
    const [old, kept] = [minuteOf(store) - appMinutesKept - 1, minuteOf(store) - appMinutesKept + 1]
    await store.addActivity([
      row(null, old, 'delivered', 1),
      row(app, old, 'delivered', 1),
      ...[row(app, old, 'delivered', 1, 1), row(app, kept, 'delivered', 1, 1)],
    ])
    await store.maintain()
    const read = async (apps: AppId[] | null, step: 1 | 60) =>
      (await store.readActivity({ apps, from: 0, to: minuteOf(store), step })).length
    assert.deepEqual([await read(null, 1), await read([app], hour), await read([app], 1)], [1, 1, 1])
    assert.deepEqual(await store.readAppActivity(0, minuteOf(store)), [
      { app, event: 'delivered', count: 1, first: kept, last: kept },
    ])
  })
}

const refused = (store: Store, sender: Sender, code: RefusedRequest['code'] = 'invalid_url'): RefusedRequest => ({
  requestId: newId('req', store.now()),
  at: store.now(),
  app: sender.app.id,
  key: sender.keyId,
  code,
  issues: ['url query_not_exactly_token'],
  origin: 'https://app.acme.test',
  recipient: store.nameRecipient('ada@example.com' as EmailAddress),
})

export function refusals(it: It): void {
  it('the newest refusals of each app are kept, and each is found by its request', async (_t, { store }) => {
    const [a, b] = [await newSender(store, 'a'), await newSender(store, 'b')]
    const other = refused(store, b, 'url_not_allowed')
    const many = Array.from({ length: refusalsMax + 7 }, () => refused(store, a))
    await store.addRefusals([other, ...many.slice(0, 50)])
    await store.addRefusals(many.slice(50))
    await store.addRefusals(many.slice(50)) // written again after an answer that was lost
    assert.deepEqual(await refusalsOf(store, a.app.id), many.slice(7).toReversed())
    assert.deepEqual(await refusalsOf(store, b.app.id), [other])
    assert.deepEqual(await store.findRefusal(other.requestId), other)
    assert.equal(await store.findRefusal(many[0]?.requestId ?? ''), null)
  })

  it('refusals are listed by app, code, key and recipient, in pages', async (_t, { store }) => {
    const [a, b] = [await newSender(store, 'a'), await newSender(store, 'b')]
    const bob = { recipient: store.nameRecipient('bob@example.com' as EmailAddress) }
    const rows = [
      refused(store, a),
      { ...refused(store, a, 'url_not_allowed'), ...bob },
      { ...refused(store, b), ...bob },
    ]
    await store.addRefusals(rows)
    const list = async (query: Partial<RefusalQuery>) => {
      const { items, next } = await store.listRefusals({ apps: null, limit: 10, ...query })
      return [items.map(({ requestId }) => rows.findIndex((row) => row.requestId === requestId)), next]
    }
    assert.deepEqual(await list({}), [[2, 1, 0], null])
    assert.deepEqual(await list({ apps: [a.app.id] }), [[1, 0], null])
    assert.deepEqual(await list({ apps: [a.app.id, b.app.id], code: 'invalid_url' }), [[2, 0], null])
    assert.deepEqual(await list({ apps: [] }), [[], null])
    assert.deepEqual(await list({ key: b.keyId }), [[2], null])
    assert.deepEqual(await list(bob), [[2, 1], null])
    assert.deepEqual(await list({ ...bob, apps: [a.app.id] }), [[1], null])
    assert.deepEqual(await list({ limit: 2 }), [[2, 1], rows[1]?.requestId])
    assert.deepEqual(await list({ limit: 2, before: rows[1]?.requestId ?? '' }), [[0], null])
  })

  it('refusals over a limit and other refusals do not displace each other', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const flood = async (code: RefusedRequest['code'], other: RefusedRequest['code']) => {
      const first = refused(store, sender, other)
      await store.addRefusals([first])
      const many = Array.from({ length: refusalsMax + 7 }, () => refused(store, sender, code))
      for (let n = 0; n < many.length; n += 50) await store.addRefusals(many.slice(n, n + 50))
      assert.deepEqual(await store.findRefusal(first.requestId), first)
      assert.equal(await store.findRefusal(many[0]?.requestId ?? ''), null)
    }
    await flood('key_rate_limited', 'invalid_url')
    await flood('invalid_url', 'daily_limit_reached')
  })

  it('the last check of a domain is kept for 30 days', async (_t, { store, advance }) => {
    const acme = newId('app', 0)
    assert.equal(await store.findCheck('service'), null)
    await store.keepCheck(acme, [{ result: 'fail' }])
    await store.keepCheck('service', [])
    advance(minuteMs)
    const laterAt = store.now()
    await store.keepCheck(acme, [{ result: 'ok' }])
    const kept = await store.findCheck(acme)
    assert.deepEqual(kept?.result, [{ result: 'ok' }])
    assert.ok(kept.at >= laterAt && kept.at <= store.now())
    assert.deepEqual((await store.findCheck('service'))?.result, [])
    advance(31 * day)
    while ((await store.maintain()).more);
    assert.equal(await store.findCheck(acme), null)
  })

  it('refusals are kept for 30 days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.addRefusals([refused(store, sender)])
    advance(31 * day)
    while ((await store.maintain()).more);
    assert.deepEqual(await refusalsOf(store, sender.app.id), [])
  })
}

export function nodes(it: It): void {
  it('a process is listed until it leaves, or has been silent for a day', async (_t, { store, advance }) => {
    const node = (machine: string) => ({
      id: newId('node', store.now()),
      machine,
      version: '1.0.0',
      roles: ['api', 'worker'],
      startedAt: store.now(),
      relays: [],
      faults: [],
    })
    const [first, second] = [node('mail-1'), node('mail-2')]
    const seenAt = store.now()
    await store.noteNode(first)
    await store.noteNode(second)
    advance(day / 2)
    const connections = { connecting: 0, open: 1, busy: 0, allowed: 5, max: 5 }
    const lastOutage = { from: 1, until: 2, reason: 'ETIMEDOUT' }
    const relay = {
      name: 'relay:25',
      certificateExpiresAt: 4,
      available: false,
      tried: false,
      since: 3,
      reason: 'ECONNREFUSED',
      connections,
      lastOutage,
    }
    await store.noteNode({ ...second, relays: [relay] })
    const [one, two] = await store.listNodes()
    assert.deepEqual([one?.machine, two?.relays], ['mail-1', [relay]])
    assert.ok(one && two && one.seenAt >= seenAt && two.seenAt >= seenAt + day / 2)
    advance(day / 2 + minuteMs)
    await store.noteNode(second)
    assert.deepEqual(
      (await store.listNodes()).map(({ machine }) => machine),
      ['mail-2'],
    )
    const { certificateExpiresAt: _, tried: __, ...earlier } = relay
    await store.noteNode({ ...second, relays: [earlier as typeof relay] })
    const ofEarlierVersion = (await store.listNodes())[0]?.relays
    assert.deepEqual(ofEarlierVersion, [{ ...earlier, certificateExpiresAt: null, tried: true }])
    await store.removeNode(second.id)
    assert.deepEqual(await store.listNodes(), [])
    // One that died is replaced by the next on its machine with its roles, as soon as it counts as silent.
    await store.noteNode(first)
    advance(1000)
    const next = node('mail-1')
    await store.noteNode({ ...node('mail-1'), roles: ['api'] })
    await store.noteNode(next)
    assert.equal((await store.listNodes()).length, 3)
    advance(nodeSilentMs)
    await store.noteNode(next)
    const left = (await store.listNodes()).map(({ id }) => id)
    assert.ok(left.includes(next.id) && !left.includes(first.id))
    assert.equal(left.length, 2, 'the one with other roles is silent, and not replaced')
  })
}

export function queueMeasures(it: It): void {
  it('every email of the queue is counted in one state', async (_t, { store }) => {
    const [a, b] = [await newSender(store, 'a'), await newSender(store, 'b')]
    for (let n = 0; n < 4; n++) await store.enqueue(request(store, a))
    const [first, second] = await claim(store, 2)
    assert.ok(first && second)
    await store.recordOutcome(first, deferred(600_000))
    for (let n = 0; n < 3; n++) await store.enqueue(request(store, b))
    assert.deepEqual((await store.measureQueue()).states, { queued: 5, sending: 1, deferred: 1, held: 0 })
    await updateApp(store, b.app.id, { status: 'disabled' })
    await updateApp(store, a.app.id, { status: 'disabled' })
    const { depth, states } = await store.measureQueue()
    assert.deepEqual([depth, states], [7, { queued: 0, sending: 1, deferred: 0, held: 6 }])
  })

  it('deferred mail of disabled apps is held, and that of others is not', async (_t, { store }) => {
    const [active, disabled] = [await newSender(store, 'a'), await newSender(store, 'b')]
    for (const sender of [active, active, disabled]) await store.enqueue(request(store, sender))
    for (const claimed of await claim(store, 9)) await store.recordOutcome(claimed, deferred(600_000))
    await updateApp(store, disabled.app.id, { status: 'disabled' })
    assert.deepEqual((await store.measureQueue()).states, { queued: 0, sending: 0, deferred: 2, held: 1 })
  })

  it('waiting mail is counted by app, state and age', async (_t, { store, advance }) => {
    const [a, b] = [await newSender(store, 'a'), await newSender(store, 'b')]
    /** With an id of this time, although ids made before may be of later ones. */
    const enqueue = (sender: Sender) => {
      const id = `${idFloor('em', store.now())}${newId('em', 0).slice(idFloor('em', 0).length)}` as EmailId
      return store.enqueue(request(store, sender, { id, lifeMs: day }))
    }
    await enqueue(a)
    await enqueue(a)
    const [first, second] = await claim(store, 2)
    assert.ok(first && second)
    await store.recordOutcome(first, deferred(day / 2))
    advance(day / 12)
    await enqueue(b)
    await enqueue(a)
    advance(2 * minuteMs)
    for (let n = 0; n < 3; n++) await enqueue(a)
    const { counts, ages } = await store.summariseQueue()
    const appOf = new Map([
      [a.app.id, 'a'],
      [b.app.id, 'b'],
    ])
    assert.deepEqual(counts.map(({ app, state, count }) => [appOf.get(app), state, count]).toSorted(), [
      ['a', 'deferred', 1],
      ['a', 'queued', 4],
      ['a', 'sending', 1],
      ['b', 'queued', 1],
    ])
    assert.deepEqual(
      new Map(ages.map(({ app, counts }) => [appOf.get(app), counts])),
      new Map([
        ['a', [3, 0, 0, 1, 0, 2]],
        ['b', [0, 0, 0, 1, 0, 0]],
      ]),
    )
  })

  it('mail is late from when an attempt is wanted, and mail that a relay has deferred is not', async (_t, {
    store,
    advance,
  }) => {
    const sender = await newSender(store, 'a')
    const lateSince = async () => {
      const { late } = await store.measureQueue()
      assert.deepEqual((await store.summariseQueue()).late, late)
      assert.ok(late.every(({ app }) => app === sender.app.id))
      return late.map(({ since }) => since)
    }
    const email = await store.enqueue(request(store, sender, { lifeMs: day }))
    assert.ok(email.kind === 'queued')
    const acceptedAt = (await store.findEmail(email.emailId))?.acceptedAt
    advance(90_000)
    assert.deepEqual(await lateSince(), [acceptedAt])
    const [held] = await claim(store)
    assert.ok(held)
    assert.deepEqual(await lateSince(), [], 'a worker has it')
    const reply = noReply('no relay is available')
    const unattempted = { kind: 'unattempted', relay: null, reply } as const
    await store.recordOutcome(held, { ...unattempted, waitMs: 300_000 })
    assert.deepEqual(await lateSince(), [acceptedAt], 'no relay took it')
    await store.retryDeferred(null, null, operator)
    assert.deepEqual(await lateSince(), [acceptedAt], 'a retry by hand does not make it young')
    const [again] = await claim(store)
    assert.ok(again)
    await store.recordOutcome(again, deferred(600_000))
    advance(590_000)
    assert.deepEqual(await lateSince(), [], 'the relay asked for this wait')
    const wanted = (await store.findEmail(email.emailId))?.nextAttemptAt
    advance(50_000)
    assert.deepEqual(await lateSince(), [wanted], 'it is due since then')
  })

  it('late mail is seen behind any amount of mail of a disabled app', async (_t, { store, advance }) => {
    const [flood, sender] = [await newSender(store, 'a'), await newSender(store, 'b')]
    await repeat(scanMax + 1, () => store.enqueue(request(store, flood, { lifeMs: day })))
    await updateApp(store, flood.app.id, { status: 'disabled' })
    await store.enqueue(request(store, sender, { lifeMs: day }))
    advance(60_000)
    assert.deepEqual(
      (await store.measureQueue()).late.map(({ app }) => app),
      [sender.app.id],
    )
  })
}
