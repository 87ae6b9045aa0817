/** The sender of the envelope: a bounce address for each email, and the relays that do not take one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findReferences } from '../../src/domain/delivery/reference.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { findSmtpServiceByName } from '../../src/services/services.ts'
import { relayTo, startTestService, type TestOptions, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

type Relayed = Parameters<typeof relayTo>[1]

/** The ids of two emails, and the commands and headers that a relay got for them. */
async function sendTwo(t: Scope, options: TestOptions, relay: Relayed = {}) {
  const server = await startScriptedServer(t, { ehlo: '250-scripted\r\n250-SIZE 1000000\r\n250 DSN' })
  const service = await startTestService(t, { relays: [relayTo(server.port, relay)], ...options })
  const answers = [await service.post(validBody()), await service.post(validBody({ to: 'bea@example.com' }))]
  await eventually(() => server.messages.length === 2)
  const ids = answers.map((answer) => answer.headers.get('email-id') ?? '')
  const mail = server.transcript.filter((line) => line.startsWith('MAIL')).sort()
  return { ids, service, messages: server.messages, mail }
}

const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const senders = (mail: readonly string[]) => mail.map((line) => /<(.*)>/.exec(line)?.[1])

test('each email has a bounce address of its own, which names it; so do ENVID, Message-ID and X-Entity-Ref-ID', async (t) => {
  const { ids, mail, messages, service } = await sendTwo(t, { bounceAddress })
  const references = ids.map((id) => service.store.makeReference(id as never))
  assert.deepEqual(senders(mail), references.map((reference) => `bounces+${reference}@bounce.acme.test`).sort())
  assert.deepEqual(
    mail.map((line) => / ENVID=(\S+)/.exec(line)?.[1]),
    references.toSorted(),
  )
  for (const name of ['Message-ID', 'X-Entity-Ref-ID']) {
    const shown = messages.flatMap((message) =>
      findReferences(new RegExp(`^${name}: .*`, 'm').exec(message)?.[0] ?? ''),
    )
    assert.deepEqual(shown.sort(), references.toSorted(), name)
  }
})

test('the app’s own bounce address comes first: with a plus it takes the reference, without one it stays', async (t) => {
  const plus = await sendTwo(t, { bounceAddress, settings: { envelopeFrom: 'b+@acme.test' } })
  for (const sender of senders(plus.mail)) assert.match(sender ?? '', /^b\+em_\w{26}\.\w{10}@acme\.test$/)
  const plain = await sendTwo(t, { bounceAddress, settings: { envelopeFrom: 'b@acme.test' } })
  assert.deepEqual(senders(plain.mail), ['b@acme.test', 'b@acme.test'])
})

test('without a bounce address, and for a relay that insists on a sender, it is that of the app', async (t) => {
  const without = await sendTwo(t, {})
  assert.deepEqual(senders(without.mail), ['auth@acme.test', 'auth@acme.test'])
  const kept = await sendTwo(t, { bounceAddress }, { keepsSender: true })
  assert.deepEqual(senders(kept.mail), ['auth@acme.test', 'auth@acme.test'])
})

test('a provider gets the reference in its own header, in front of the message; SIZE counts it', async (t) => {
  const headers = {
    postmark: /^X-PM-Metadata-postern: (\S+)\r?\nFrom: /,
    sendgrid: /^X-SMTPAPI: \{"unique_args":\{"postern":"([^"]+)"\}\}\r?\nFrom: /,
    brevo: /^X-Mailin-custom: (\S+)\r?\nFrom: /,
  } as const
  for (const provider of ['postmark', 'sendgrid', 'brevo'] as const) {
    const { ids, mail, messages, service } = await sendTwo(t, {}, { service: findSmtpServiceByName(provider) })
    const references = ids.map((id) => service.store.makeReference(id as never))
    const shown = messages.map((message) => headers[provider].exec(message)?.[1])
    assert.deepEqual(shown.sort(), references.toSorted(), provider)
    const sizes = mail.map((line) => Number(/ SIZE=(\d+)/.exec(line)?.[1]))
    // Without the dots that SMTP adds, and with the last CR LF, which the server cut.
    const lengths = messages.map((message) => message.replaceAll('\r\n..', '\r\n.').length + 2)
    assert.deepEqual(sizes.sort(), lengths.sort(), provider)
  }
})
