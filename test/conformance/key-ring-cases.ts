/** Conformance: keys of the ring, and the mail that they seal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stepMax } from '../../src/domain/bounds.ts'
import type { Reference } from '../../src/domain/delivery/reference.ts'
import { type EmailId, newId } from '../../src/domain/id.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { claim, day, deferred, delivered, type Engine, type It, newSender, request, testRing } from './subject.ts'

export function keyRings(it: It, engine: Engine): void {
  it('a reference is the same after a rotation; a forged one, or one of another database, names nothing', async (t, {
    store,
    reopen,
  }) => {
    const [one, two] = [newId('em', 1), newId('em', 2)]
    const reference = store.makeReference(one)
    const rotated = await reopen({ ring: [...newRing('new'), ...testRing(store)] })
    atEnd(t, () => rotated.close())
    assert.equal(rotated.makeReference(one), reference)
    assert.equal(rotated.openReference(reference), one)
    const [mac, otherMac] = [reference.slice(-10), store.makeReference(two).slice(-10)]
    assert.notEqual(mac, otherMac)
    for (const forged of [`${two}.${mac}`, `${one}.${otherMac}`, `${one}.${mac.slice(0, -1)}`])
      assert.equal(store.openReference(forged as Reference), null, forged)
    const other = await engine.open(t)
    assert.equal(other.store.openReference(reference), null)
  })

  it('rotation: older keys of the ring open what they sealed, and limits go on', async (t, { store, reopen }) => {
    const sender = await newSender(store, 'a', { recipientPerHour: 1 })
    await store.enqueue(request(store, sender, { to: 'ada@x.org' }))
    await assert.rejects(reopen({ ring: newRing('stranger') }), { name: 'KeyMissing' })
    const rotated = await reopen({ ring: [...newRing('new'), ...testRing(store)] })
    atEnd(t, () => rotated.close())
    assert.equal((await rotated.enqueue(request(store, sender, { to: 'ada@x.org' }))).kind, 'recipient_rate_limited')
    assert.equal((await claim(rotated))[0]?.content.to, 'ada@x.org')
  })

  test(`${engine.name}: an email whose key has left the ring waits for it, the others flow`, async (t) => {
    const [old, fresh] = [newRing('old'), newRing('new')]
    const { store, reopen } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a')
    const held = await store.enqueue(request(store, sender))
    const rotated = await reopen({ ring: [...fresh, ...old] })
    await rotated.enqueue(request(rotated, sender, { to: 'bob@x.org' }))
    await rotated.close()
    const without = await reopen({ ring: fresh })
    atEnd(t, () => without.close())
    assert.deepEqual(
      (await claim(without)).map((found) => found.content.to),
      ['bob@x.org'],
    )
    const record = held.kind === 'queued' ? await without.findEmail(held.emailId) : null
    assert.equal(record?.state, 'deferred')
    assert.match(record.trail.at(-1)?.reply?.text ?? '', /key ring lacks the key "old"/)
    assert.deepEqual(await without.listMissingKeys(), [{ keyId: 'old', emails: 1 }])
    assert.deepEqual((await without.measureQueue()).late, [], 'it wants no attempt')
    await without.close() // on SQLite it has the worker lock
    assert.equal((await claim(store))[0]?.attempt, 1, 'due at once when the key is back')
    assert.ok((await store.listMissingKeys()).every(({ keyId }) => keyId !== 'old'))
  })

  test(`${engine.name}: after a start without a key, all its mail is found, due or not, and nothing else`, async (t) => {
    const [old, fresh] = [newRing('old'), newRing('new')]
    const { store, reopen, advance } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a')
    const ids: (EmailId | null)[] = []
    for (let n = 0; n < 5; n++) {
      const result = await store.enqueue(request(store, sender))
      ids.push(result.kind === 'queued' ? result.emailId : null)
    }
    const claims = await claim(store, 3)
    for (const one of claims) await store.recordOutcome(one, deferred(600_000))
    await store.close() // on SQLite it has the worker lock
    const rotated = await reopen({ ring: [...fresh, ...old] })
    await rotated.enqueue(request(rotated, sender, { to: 'bob@x.org' }))
    await rotated.close()
    const without = await reopen({ ring: fresh })
    atEnd(t, () => without.close())
    while ((await without.maintain()).more);
    assert.deepEqual(await without.listMissingKeys(), [{ keyId: 'old', emails: 5 }])
    await without.close()
    const again = await reopen({ ring: [...fresh, ...old] })
    atEnd(t, () => again.close())
    // Three are due at once; those that a relay deferred wait for as long as they would have.
    assert.equal((await claim(again)).length, 3)
    assert.deepEqual(await again.listMissingKeys(), [])
    advance(600_000)
    assert.equal((await claim(again)).filter(({ attempt }) => attempt === 2).length, 3)
  })

  test(`${engine.name}: closed mail that waits delays no new mail, whatever time passes`, async (t) => {
    const [old, fresh] = [newRing('old'), newRing('new')]
    const { store, reopen, advance } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a', { keyPerMinute: 10_000 })
    for (let n = 0; n < 60; n++) await store.enqueue(request(store, sender, { lifeMs: 7 * day }))
    await (await reopen({ ring: [...fresh, ...old] })).close()
    await store.close() // on SQLite it has the worker lock
    const without = await reopen({ ring: fresh })
    atEnd(t, () => without.close())
    while ((await without.maintain()).more);
    advance(day)
    await without.enqueue(request(without, sender, { to: 'bob@x.org' }))
    assert.deepEqual(
      (await claim(without, 5)).map(({ content }) => content.to),
      ['bob@x.org'],
    )
    assert.deepEqual(await without.listMissingKeys(), [{ keyId: 'old', emails: 60 }])
  })

  test(`${engine.name}: mail under a lease is not marked, and the search goes on over many steps`, async (t) => {
    const [old, fresh] = [newRing('k'.repeat(32)), newRing('new')]
    const { store, reopen, advance } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a', { keyPerMinute: 100_000, daily: 100_000 })
    const emails = stepMax + 20
    for (let n = 0; n < emails; n++) await store.enqueue(request(store, sender))
    await (await reopen({ ring: [...fresh, ...old] })).close()
    const held = await claim(store, 10)
    const without = await reopen({ ring: fresh })
    atEnd(t, () => without.close())
    assert.equal((await without.maintain()).more, true)
    while ((await without.maintain()).more);
    assert.deepEqual(await without.listMissingKeys(), [{ keyId: 'k'.repeat(32), emails: emails - 10 }])
    assert.deepEqual((await without.measureQueue()).late, [])
    for (const one of held) assert.equal(await store.recordOutcome(one, delivered), true)
    advance(1000) // on PostgreSQL, not every claim looks for it
    assert.equal((await claim(store, 10)).length, 10)
  })

  it('a seal without the id of a key is damaged', async (_t, { store, execute }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const isPostgres = engine.name === 'PostgreSQL'
    await execute(`update queue set sealed = ${isPostgres ? "'\\x03000102000000'" : "x'03000102000000'"}`)
    const { ended } = await store.claimDue({ max: 10, perApp: 10, leases: [] })
    assert.deepEqual(
      ended.map(({ reason }) => reason),
      ['unreadable'],
    )
  })

  it('an email that its key does not open fails, and the claim says so', async (_t, subject) => {
    const { store, execute } = subject
    const sender = await newSender(store, 'a')
    const held = await store.enqueue(request(store, sender))
    await execute("update queue set sealed = (select sealed from secret where name = 'hash-key')")
    await store.enqueue(request(store, sender, { to: 'bob@x.org' }))
    const { claims, ended } = await store.claimDue({ max: 10, perApp: 10, leases: [] })
    assert.deepEqual(
      claims.map(({ content }) => content.to),
      ['bob@x.org'],
    )
    assert.ok(held.kind === 'queued')
    assert.deepEqual(ended, [{ emailId: held.emailId, appId: sender.app.id, state: 'failed', reason: 'unreadable' }])
  })

  test(`${engine.name}: a key with the id of another one is refused, first in the ring or not`, async (t) => {
    const [old, fresh] = [newRing('old'), newRing('new')]
    const { store, reopen } = await engine.open(t, { ring: old })
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    await (await reopen({ ring: [...fresh, ...old] })).close()
    for (const ring of [
      [...fresh, ...newRing('old')],
      [...newRing('new'), ...old],
      [...newRing('old'), ...fresh],
    ] as KeyRing[])
      await assert.rejects(reopen({ ring }), { name: 'KeyDiffers' })
    assert.equal((await claim(store)).length, 1)
  })
}
