import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailAddress } from '../request/email-address.ts'
import { chooseEnvelopeSender, chooseSenders } from './envelope.ts'

const from = { name: 'Acme', address: 'auth@acme.test' }
const service = 'bounces@bounce.acme.test' as EmailAddress

for (const [envelopeFrom, bounceAddress, usual, kept] of [
  [undefined, null, from.address, from.address],
  [undefined, service, service, from.address],
  ['bounces+@mail.acme.test', service, 'bounces+@mail.acme.test', from.address],
  ['bounces@mail.acme.test', service, 'bounces@mail.acme.test', 'bounces@mail.acme.test'],
] as const)
  test(`an app with ${envelopeFrom}, a service with ${bounceAddress}: ${usual}, or ${kept} where it is kept`, () => {
    const senders = chooseSenders({ from, ...(envelopeFrom && { envelopeFrom }) }, bounceAddress)
    assert.equal(chooseEnvelopeSender(senders, false), usual)
    assert.equal(chooseEnvelopeSender(senders, true), kept)
  })
