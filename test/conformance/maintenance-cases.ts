/** Conformance: maintenance. */
import assert from 'node:assert/strict'
import { type EmailId, idFloor } from '../../src/domain/id.ts'
import { repeat } from '../support/wait.ts'
import { claim, day, delivered, type It, newSender, request } from './subject.ts'

export function maintenance(it: It): void {
  it('what has expired leaves also while no worker claims', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await repeat(1100, () => store.enqueue(request(store, sender, { lifeMs: 1000 })))
    advance(1000)
    while ((await store.maintain()).more);
    assert.equal((await store.readQueueGauge()).depth, 0)
  })

  it('an email that a worker holds when its link expires is left to that worker', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    for (let n = 0; n < 2; n++) await store.enqueue(request(store, sender, { lifeMs: 1000 }))
    const [held] = await claim(store, 1)
    assert.ok(held)
    advance(2000)
    while ((await store.maintain()).more);
    assert.equal((await store.readQueueGauge()).depth, 1)
    assert.equal(await store.recordOutcome(held, delivered), true)
    assert.equal((await store.findEmail(held.emailId))?.state, 'delivered')
  })

  it('maintenance of many rows ends', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await repeat(2600, (n) => store.enqueue(request(store, sender, { idem: `k${n}` })))
    advance(2 * day)
    let steps = 0
    while ((await store.maintain()).more && steps < 1000) steps += 1
    assert.ok(steps < 50, `${steps} steps`)
  })

  it('a scan that has ended does not begin again at once', async (_t, { store, advance }) => {
    await store.enqueue(request(store, await newSender(store, 'a'), { idem: 'k' }))
    while ((await store.maintain()).more);
    advance(9 * 60_000)
    assert.equal((await store.maintain()).more, false)
  })

  it('records go after thirty days', async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    // Not the next id of this process, which tests that moved the clock may have made one of tomorrow.
    const id = `${idFloor('em', store.now())}${'0'.repeat(16)}` as EmailId
    const result = await store.enqueue(request(store, sender, { id }))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    assert.ok(result.kind === 'queued')
    advance(29 * day)
    while ((await store.maintain()).more);
    assert.ok(await store.findEmail(result.emailId))
    advance(3 * day)
    while ((await store.maintain()).more);
    assert.equal(await store.findEmail(result.emailId), null)
  })
}
