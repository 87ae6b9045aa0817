/** Greylisting: a bounce address of its own for each email must not make each of them wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Reference, toBounceAddress } from '../../src/domain/delivery/reference.ts'
import { newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { lacking } from '../support/installed.ts'
import { startPostgrey } from '../support/postgrey.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('postgrey')
const newReference = () => `${newId('em', Date.now())}.0123456789` as Reference
const base = 'bounces@bounce.acme.test' as EmailAddress
const recipient = 'ada@example.com'

test('postgrey knows a sender by what is in front of the +', { skip }, async (t) => {
  const { takes } = await startPostgrey(t)
  const newSender = () => toBounceAddress(base, newReference())
  const sender = newSender()
  assert.equal(await takes(sender, recipient), false)
  await eventually(() => takes(sender, recipient))
  assert.equal(await takes(newSender(), recipient), true)
  assert.equal(await takes(newSender(), 'grace@example.com'), false, 'each recipient is deferred once')
})

test('without a + each email would be deferred', { skip }, async (t) => {
  const { takes } = await startPostgrey(t)
  const newSender = () => `${newReference()}@bounce.acme.test`
  const sender = newSender()
  assert.equal(await takes(sender, recipient), false)
  await eventually(() => takes(sender, recipient))
  assert.equal(await takes(newSender(), recipient), false)
})
