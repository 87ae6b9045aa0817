/** Mail that is signed by keys of its domain (DKIM), as a relay gets it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SigningAlgorithm } from '../../src/domain/delivery/signing-key.ts'
import { dkimName, formatDkimRecord } from '../../src/domain/dns/dkim-record.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { findSmtpServiceByName } from '../../src/services/services.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { readTags, verifySignatures } from '../support/dkim.ts'
import { operator } from '../support/operator.ts'
import { newRing, relayTo, startTestService, type TestOptions, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

/** A service with a relay, and the records that its domain publishes. */
async function startSigning(t: Scope, options: TestOptions = {}, relay: Parameters<typeof relayTo>[1] = {}) {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(server.port, relay)], ...options })
  const { app, config, store } = service
  const records = new Map<string, string>()
  return {
    service,
    async addKey(selector: string, algorithm: SigningAlgorithm, { domain = 'acme.test', ring = config.ring } = {}) {
      const key = await makeSigningKey(ring, { domain, selector, algorithm })
      await store.addSigningKey({ ...key, app: app.id }, operator)
      records.set(dkimName(selector, domain), formatDkimRecord(algorithm, key.publicKey))
      await store.activateSigningKey({ domain, selector, app: app.id }, operator)
    },
    /** The message that the relay gets for one email. */
    async send(): Promise<string> {
      const answer = await service.post(validBody())
      const id = answer.headers.get('email-id') ?? ''
      const { raw } = await eventually(() => server.received.find((message) => message.raw.includes(id)))
      return raw
    },
    verify: (raw: string) => verifySignatures(Buffer.from(raw, 'latin1'), (name) => records.get(name)),
  }
}

const selectors = (raw: string) =>
  [...raw.matchAll(/^DKIM-Signature:((?:.|\r\n )*)/gm)].map(([, tags = '']) => readTags(tags).s)

test('mail of a domain with keys is signed by each of its active ones; of another domain, it is not', async (t) => {
  const { addKey, send, service, verify } = await startSigning(t)
  await addKey('other', 'ed25519', { domain: 'other.test' })
  await addKey('e1', 'ed25519')
  await addKey('r1', 'rsa')
  const raw = await send()
  assert.deepEqual(
    [selectors(raw), verify(raw)],
    [
      ['r1', 'e1'],
      ['pass', 'pass'],
    ],
  )
  const settings = {
    ...service.app.settings,
    ...{ from: { name: 'Acme', address: 'auth@unsigned.test' }, senderDomains: ['unsigned.test'] },
  }
  await service.store.updateApp(service.app.id, { settings }, operator)
  assert.deepEqual(selectors(await send()), [])
})

test('mail of an app that lost the domain of its sender is neither signed nor sent, and says why', async (t) => {
  const { addKey, send, service } = await startSigning(t)
  await addKey('e1', 'ed25519')
  const change = (senderDomains: string[]) =>
    service.store.updateApp(service.app.id, { settings: { ...service.app.settings, senderDomains } }, operator)
  await change([])
  const answer = await service.post(validBody())
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  const waiting = await eventually(async () => {
    const found = await service.store.findEmail(id)
    return found?.state === 'deferred' ? found : null
  })
  assert.deepEqual(
    [waiting.attempts, waiting.trail[0]?.reply?.text],
    [0, 'acme.test is not a sender domain of the app'],
  )
  await change(['acme.test'])
  assert.deepEqual(selectors(await send()), ['e1'], 'the next email goes')
  await service.store.retryEmail(id, operator)
  await eventually(async () => (await service.store.findEmail(id))?.state === 'delivered')
})

test('for a relay that sets the Date and the Message-ID, the signature covers neither', async (t) => {
  const { addKey, send, verify } = await startSigning(t, {}, { service: findSmtpServiceByName('sendgrid') })
  await addKey('e1', 'ed25519')
  const raw = await send()
  assert.match(raw, /^X-SMTPAPI: /, 'the header of the provider is in front of the signature')
  assert.deepEqual(verify(raw), ['pass'])
  const changed = raw.replace(/^Date: .*$/m, 'Date: x').replace(/^Message-ID: .*$/m, 'Message-ID: <y>')
  assert.deepEqual(verify(changed), ['pass'])
})

test('a relay that composes messages itself gets no signature', async (t) => {
  const { addKey, send } = await startSigning(t, {}, { service: findSmtpServiceByName('postmark') })
  await addKey('e1', 'ed25519')
  assert.deepEqual(selectors(await send()), [])
})

test('a key that the ring cannot open holds the mail of its domain, and says so', async (t) => {
  const { addKey, send, service } = await startSigning(t)
  await addKey('lost', 'ed25519', { ring: newRing('lost') })
  const answer = await service.post(validBody())
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  const record = await eventually(async () => {
    const found = await service.store.findEmail(id)
    return found?.state === 'deferred' ? found : null
  })
  const [attempt] = record.trail
  assert.equal(attempt?.outcome, 'unattempted')
  assert.equal(attempt?.reply?.text, 'the key ring cannot open the signing key lost of acme.test')
  assert.equal(record.attempts, 0)
  const waitMs = (record.nextAttemptAt ?? 0) - service.store.now()
  assert.ok(waitMs > 290_000 && waitMs <= 300_000, String(waitMs))
  const line = service.log.find((text) => text.includes('cannot open a key that signs mail'))
  assert.match(line ?? '', /"domain":"acme\.test","selector":"lost"/)
  const settings = {
    ...service.app.settings,
    ...{ from: { name: 'Acme', address: 'auth@unsigned.test' }, senderDomains: ['unsigned.test'] },
  }
  await service.store.updateApp(service.app.id, { settings }, operator)
  assert.deepEqual(selectors(await send()), [], 'another domain is not held')
})
