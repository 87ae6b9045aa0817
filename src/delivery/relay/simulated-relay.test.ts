import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testMessage } from '../../../test/support/smtp.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { Clearance, Message } from './relay.ts'
import { SimulatedRelay } from './simulated-relay.ts'

const open: Clearance = { deadlineMs: Number.POSITIVE_INFINITY, isLeaseValid: () => true }
const to = (outcome: string): Partial<Message> => ({ to: `${outcome}@postern.test` as EmailAddress })

function newRelay(keep: () => Promise<void> = async () => {}) {
  let kept = 0
  const relay = new SimulatedRelay(async () => {
    kept++
    await keep()
  })
  return { relay, kept: () => kept }
}

test('only what is accepted, and ends so or as reported, is kept', async () => {
  for (const [outcome, keeps] of Object.entries({
    delivered: 1,
    bounced: 1,
    complained: 1,
    refused: 0,
    suppressed: 0,
  })) {
    const { kept, relay } = newRelay()
    await relay.submit(testMessage(to(outcome)), open)
    assert.equal(kept(), keeps, outcome)
    assert.equal(relay.inProgress(), 0)
  }
})

test('the first attempt of a deferred email fails, the second succeeds', async () => {
  const { relay } = newRelay()
  const first = await relay.submit(testMessage({ ...to('deferred'), attempt: 1 }), open)
  assert.ok(first.kind === 'failed' && !first.failureClass.permanent && first.failureClass.scope === 'message')
  assert.equal((await relay.submit(testMessage({ ...to('deferred'), attempt: 2 }), open)).kind, 'accepted')
})

test('an email whose lease is lost, or whose link has expired, is not accepted', async () => {
  const { kept, relay } = newRelay()
  const lost = await relay.submit(testMessage(to('delivered')), { ...open, isLeaseValid: () => false })
  assert.equal(lost.kind, 'stopped')
  const late = await relay.submit(testMessage(to('delivered')), { ...open, deadlineMs: performance.now() })
  assert.equal(late.kind, 'expired')
  assert.equal(kept(), 0)
})

test('an email that cannot be kept is tried again later; a bug is none', async () => {
  const down = newRelay(() => Promise.reject(new StoreUnavailable('down')))
  const submission = await down.relay.submit(testMessage(to('delivered')), open)
  assert.ok(submission.kind === 'failed' && !submission.failureClass.permanent)
  const broken = newRelay(() => Promise.reject(new TypeError('a bug')))
  await assert.rejects(broken.relay.submit(testMessage(to('delivered')), open), TypeError)
})

test('a slow email ends when the worker stops', async () => {
  const { kept, relay } = newRelay()
  const submitted = relay.submit(testMessage(to('slow')), open)
  assert.equal(relay.inProgress(), 1)
  relay.close()
  assert.deepEqual(await submitted, { kind: 'stopped', why: 'the worker stopped' })
  assert.equal(kept(), 0)
})
