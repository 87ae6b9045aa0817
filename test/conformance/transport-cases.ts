/** Conformance: lists of relays of apps, and claims of their mail. */
import assert from 'node:assert/strict'
import { appsPerClaim, appsSeenPerClaim } from '../../src/domain/bounds.ts'
import { suspectAfter } from '../../src/domain/delivery/states.ts'
import { transportsMax } from '../../src/domain/delivery/transport.ts'
import { openTransport, resealTransports, sealTransport } from '../../src/store/crypto/sealed-transport.ts'
import { type Claim, leaseMs, type Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { queueSuspects } from './queue-cases.ts'
import { claim, delivered, type It, newSender, request, type Sender, testRing, updateApp } from './subject.ts'

const urls = 'smtp://user:secret@smtp.acme.test:587'

const put = async (store: Store, name: string) => {
  const sealed = sealTransport(testRing(store), name, urls)
  const stored = await store.putTransport({ name, sealed, before: null, after: ['smtp.acme.test:587'] }, operator)
  assert.ok(stored !== 'too_many')
  return stored
}

async function newSenderBy(store: Store, slug: string, transport: string | null): Promise<Sender> {
  const sender = await newSender(store, slug)
  if (transport === null) return sender
  return { ...sender, app: await updateApp(store, sender.app.id, { settings: { ...sender.app.settings, transport } }) }
}

const claimFor = (store: Store, transport: string | null, max = 10) =>
  store.claimDue({ transport, max, perApp: 1000, leases: [] })

export function transports(it: It): void {
  it('a transport is stored sealed, replaced, listed by name, bounded in number and deleted', async (_t, {
    store,
    advance,
  }) => {
    const second = await put(store, 'second')
    await put(store, 'first')
    advance(1000)
    const replaced = await put(store, 'second')
    assert.equal(replaced.createdAt, second.createdAt)
    assert.ok(replaced.changedAt >= second.createdAt + 1000)
    const listed = await store.listTransports()
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['first', 'second'],
    )
    assert.ok(!JSON.stringify(listed).includes('secret'))
    assert.equal(openTransport(testRing(store), replaced), urls)
    for (let n = 2; n < transportsMax; n++) await put(store, `t${n}`)
    const more = { name: 'more', sealed: '', before: null, after: [] }
    assert.equal(await store.putTransport(more, operator), 'too_many')
    await put(store, 'first')
    assert.equal(await store.deleteTransport('first', operator), true)
    assert.equal(await store.deleteTransport('first', operator), false)
    assert.ok((await store.putTransport(more, operator)) !== 'too_many')
    const { items } = await store.listAudit({ limit: 3 })
    assert.deepEqual(
      items.map(({ action, target }) => `${action} ${target}`),
      ['transport.put more', 'transport.delete first', 'transport.put first'],
    )
    assert.ok(!JSON.stringify(items).includes('secret'))
  })

  it('after a rotation each transport is sealed by the new key, and opens for its own name alone', async (t, subject) => {
    const { store } = subject
    const old = testRing(store)
    const stored = await put(store, 'acme')
    const fresh = newRing('fresh')
    const ring = [...fresh, ...old] as const
    const rotated = await subject.reopen({ ring })
    atEnd(t, () => rotated.close())
    assert.deepEqual(await resealTransports(ring, rotated), [])
    const [resealed = stored] = await rotated.listTransports()
    assert.notEqual(resealed.sealed, stored.sealed)
    assert.equal(openTransport(fresh, resealed), urls)
    assert.equal(openTransport(fresh, { ...resealed, name: 'other' }), null)
    await rotated.resealTransport({ name: 'acme', sealed: stored.sealed }, 'late')
    assert.deepEqual(await rotated.listTransports(), [resealed], 'one that was changed since stays')
  })

  it('a claim takes the mail of one transport, and names others whose mail waits', async (_t, { store }) => {
    const senders = [
      await newSenderBy(store, 'a', null),
      await newSenderBy(store, 'b', 'acme'),
      await newSenderBy(store, 'c', 'other'),
      await newSenderBy(store, 'd', 'acme'),
    ]
    for (const sender of senders) for (let n = 0; n < 3; n++) await store.enqueue(request(store, sender))
    const apps = (claims: readonly { appId: string }[]) =>
      claims.map(({ appId }) => senders.findIndex(({ app }) => app.id === appId))
    const ofAcme = await claimFor(store, 'acme', 4)
    assert.deepEqual(apps(ofAcme.claims).toSorted(), [1, 1, 3, 3])
    assert.deepEqual(new Set(ofAcme.elsewhere), new Set([null, 'other']))
    assert.equal(ofAcme.apps.get(senders[1]?.app.id as never)?.settings.transport, 'acme')
    const ofService = await claimFor(store, null)
    assert.deepEqual(apps(ofService.claims), [0, 0, 0])
    assert.deepEqual(new Set(ofService.elsewhere), new Set(['acme', 'other']))
    assert.deepEqual(apps((await claimFor(store, 'other')).claims), [2, 2, 2])
    assert.deepEqual((await claimFor(store, 'unknown')).claims, [])
    const last = await claimFor(store, 'acme')
    assert.deepEqual([apps(last.claims).toSorted(), last.elsewhere], [[1, 3], []])
  })

  it('the apps of each transport take turns of their own', async (_t, { store }) => {
    const slugs = ['a', 'b', 'c', 'd', 'e', 'f']
    const senders = await Promise.all(slugs.map((slug, n) => newSenderBy(store, slug, n % 2 === 0 ? null : 'acme')))
    for (const sender of senders) for (let n = 0; n < 4; n++) await store.enqueue(request(store, sender))
    const served: Record<string, number> = {}
    for (let n = 0; n < 6; n++)
      for (const transport of n % 2 === 0 ? [null, 'acme'] : ['acme', null])
        for (const { appId } of (await claimFor(store, transport, 1)).claims) served[appId] = (served[appId] ?? 0) + 1
    assert.deepEqual(Object.values(served), [2, 2, 2, 2, 2, 2])
  })

  it('an app that changes its transport is claimed by the new one, also mail that waited', async (_t, { store }) => {
    const { app, ...sender } = await newSenderBy(store, 'a', 'acme')
    await store.enqueue(request(store, { ...sender, app }))
    const { transport: _, ...settings } = app.settings
    await updateApp(store, app.id, { settings })
    assert.deepEqual((await claimFor(store, 'acme')).claims, [])
    assert.equal((await claimFor(store, null)).claims.length, 1)
  })

  it('a suspect goes out with a claim for its own transport', async (_t, { store, advance }) => {
    const sender = await newSenderBy(store, 'a', 'acme')
    await store.enqueue(request(store, sender))
    for (let lost = 0; lost < suspectAfter; lost++) {
      assert.equal((await claimFor(store, 'acme')).claims.length, 1)
      advance(leaseMs)
      await claim(store) // takes the lease back
      advance(leaseMs)
    }
    assert.deepEqual(await claim(store), [])
    const { claims } = await claimFor(store, 'acme')
    assert.deepEqual(
      claims.map(({ isSuspect }) => isSuspect),
      [true],
    )
  })

  it('apps whose mail may not be taken are passed in bounded steps, and those behind them are reached', async (_t, {
    store,
  }) => {
    const many = appsSeenPerClaim + appsPerClaim
    const held = await Promise.all(Array.from({ length: many }, (_, n) => newSenderBy(store, `held${n}`, 'acme')))
    for (const sender of held) await store.enqueue(request(store, sender))
    const nothing = await claimFor(store, null)
    assert.deepEqual([nothing.claims, nothing.more], [[], true], 'another claim goes on behind them')
    let claims = 2
    while ((await claimFor(store, null)).more) claims++
    assert.equal(claims, Math.ceil(many / appsSeenPerClaim), 'once round all of them')
    await store.enqueue(request(store, await newSenderBy(store, 'behind', null)))
    const found = []
    for (let n = 0; n < 3 && found.length === 0; n++) found.push(...(await claimFor(store, null)).claims)
    assert.equal(found.length, 1)
  })

  it('apps of which the worker may hold no more are passed, however many they are', async (_t, { store }) => {
    const full = await Promise.all(Array.from({ length: appsPerClaim }, (_, n) => newSenderBy(store, `full${n}`, null)))
    const last = await newSenderBy(store, 'last', null)
    for (const sender of [...full, last, ...full, last]) await store.enqueue(request(store, sender))
    const claim = (leases: readonly Claim[]) => store.claimDue({ max: 99, perApp: 1, leases })
    const { claims: leases } = await claim([])
    assert.equal(leases.length, appsPerClaim)
    const [own, ...more] = (await claim(leases)).claims
    assert.ok(own !== undefined && more.length === 0)
    await store.recordOutcome(own, delivered)
    const { claims } = await claim(leases)
    assert.deepEqual([claims.length, claims[0]?.appId], [1, own.appId])
  })

  it('while suspects wait, the turns go on behind apps whose mail may not be taken', async (_t, { store, advance }) => {
    await queueSuspects(store, await newSender(store, 'z'), advance)
    for (let n = 0; n < appsSeenPerClaim; n++)
      await store.enqueue(request(store, await newSenderBy(store, `held${n}`, 'acme'), { lifeMs: 86_400_000 }))
    const behind = await newSenderBy(store, 'behind', null)
    await store.enqueue(request(store, behind, { lifeMs: 86_400_000 }))
    const turns = [await claimFor(store, null, 1), await claimFor(store, null, 1)]
    assert.deepEqual(
      turns.map(({ claims: [held] }) => held?.isSuspect === true || held?.appId),
      [true, behind.app.id],
    )
  })

  it('leases that a worker holds for another transport are renewed, and count for no app', async (_t, {
    store,
    advance,
  }) => {
    const { app, ...sender } = await newSenderBy(store, 'a', 'acme')
    for (let n = 0; n < 4; n++) await store.enqueue(request(store, { ...sender, app }))
    const { claims: others } = await claimFor(store, 'acme', 2)
    const { transport: _, ...settings } = app.settings
    const moved = await updateApp(store, app.id, { settings })
    assert.equal(moved.settings.transport, undefined)
    advance(leaseMs * 0.9)
    const { claims } = await store.claimDue({ max: 9, perApp: 2, leases: [], others })
    assert.equal(claims.length, 2)
    advance(leaseMs * 0.9)
    const { lost } = await store.claimDue({ max: 9, perApp: 2, leases: claims, others })
    assert.deepEqual(lost, [])
    assert.deepEqual(await store.renewLeases(others), [])
  })
}
