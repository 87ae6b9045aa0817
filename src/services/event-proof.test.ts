import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { lacking } from '../../test/support/installed.ts'
import {
  basicHeader,
  type Caller,
  callers,
  newSecrets,
  prove,
  readKeys,
  signBody,
  writeKeys,
} from '../../test/support/provider-calls.ts'
import { temporaryFolder } from '../../test/support/temporary.ts'
import { provesBody, provesCall } from './event-keys.ts'
import { findEventService } from './services.ts'

const atMs = 1_794_000_000_000
const secrets = newSecrets(1)
const others = newSecrets(2)
const keys = readKeys(writeKeys(secrets))
const text = '[{"email":"ada@example.com","event":"bounce","note":"é"}]\r\n'

type Change = {
  readonly headers?: Record<string, string | undefined>
  readonly body?: string
  readonly nowMs?: number
  readonly by?: string
}

const eventsOf = (caller: Caller) => findEventService(caller)?.events ?? assert.fail(caller)

const proves = (provider: Caller, { headers = {}, body = text, nowMs = atMs, by }: Change = {}) =>
  provesCall(
    eventsOf(provider),
    { headers: { ...prove(provider, secrets, { text, atMs }), ...headers }, body: Buffer.from(body), nowMs, ask },
    by === undefined ? keys : readKeys(by),
  )

/** None of these proofs asks a server. */
const ask = () => assert.fail()

const signed = ['resend', 'sendgrid'] as const

test('every provider proves a call by its own secret, and by no other provider’s', async () => {
  for (const provider of callers) {
    assert.ok(await proves(provider), provider)
    assert.ok(!(await proves(provider, { by: writeKeys(others) })), provider)
    assert.ok(
      !(await provesCall(eventsOf(provider), { headers: {}, body: Buffer.from(text), nowMs: atMs, ask }, keys)),
      provider,
    )
    assert.ok(
      !(await provesCall(eventsOf(provider), { headers: {}, body: Buffer.from(text), nowMs: atMs, ask }, [])),
      provider,
    )
  }
  const names = ['basic', 'resend', 'sendgrid']
  for (const provider of callers) {
    const own = signed.find((name) => name === provider) ?? 'basic'
    for (const name of names) {
      const entry = writeKeys(secrets)
        .split(' ')
        .find((each) => each.startsWith(`${name}:`))
      assert.equal(await proves(provider, { by: entry ?? '' }), name === own, `${provider} by ${name}`)
    }
  }
})

test('during a rotation, either secret proves a call', async () => {
  for (const by of [`${writeKeys(others)} ${writeKeys(secrets)}`, `${writeKeys(secrets)}\n${writeKeys(others)}`])
    for (const provider of callers) assert.ok(await proves(provider, { by }), provider)
})

test('a signature covers the bytes as they came, and the time', async () => {
  for (const provider of signed) {
    for (const body of [text.trim(), JSON.stringify(JSON.parse(text)), text.replace('é', 'e'), `${text} `, ''])
      assert.ok(!(await proves(provider, { body })), `${provider} ${body}`)
    const [time] = Object.keys(prove(provider, secrets, { text, atMs })).filter((name) => name.endsWith('timestamp'))
    for (const value of ['1793999999', '', '0', ' 1794000000', '1794000000 ', '1794000000.0', '9'.repeat(2000)])
      assert.ok(!(await proves(provider, { headers: { [time ?? '']: value } })), `${provider} ${value}`)
  }
})

test('Resend: a call proves nothing five minutes later; SendGrid’s does, since a repeat changes nothing', async () => {
  for (const [byMs, isValid] of [
    [300_000, true],
    [-300_000, true],
    [301_000, false],
    [-301_000, false],
  ] as const)
    assert.equal(await proves('resend', { nowMs: atMs + byMs }), isValid, `${byMs}`)
  assert.ok(await proves('sendgrid', { nowMs: atMs + 86_400_000 }))
})

test('nonsense in the place of a signature proves nothing', async () => {
  const nonsense = ['', 'x', 'v1,', '====', 'MEUC', `MEUC${'A'.repeat(90)}`, 'A'.repeat(2000), '\u00ff', 'null']
  for (const value of nonsense) {
    assert.ok(!(await proves('sendgrid', { headers: { 'x-twilio-email-event-webhook-signature': value } })), value)
    assert.ok(!(await proves('resend', { headers: { 'svix-signature': value } })), value)
    for (const header of [value, `Basic ${value}`, `Bearer ${value}`])
      assert.ok(!(await proves('postmark', { headers: { authorization: header } })), header)
  }
})

test('Basic: user and password as a whole, in any case of its name', async () => {
  const { authorization = '' } = basicHeader(secrets.basic)
  assert.ok(await proves('brevo', { headers: { authorization: authorization.replace('Basic', 'basic') } }))
  for (const credentials of [
    secrets.basic.slice(0, -1),
    `${secrets.basic}1`,
    secrets.basic.toUpperCase(),
    secrets.basic.replace(':', ''),
    'postern:',
  ])
    assert.ok(!(await proves('brevo', { headers: basicHeader(credentials) })), credentials)
  for (const header of [`${authorization}, ${authorization}`, `${authorization} x`, authorization.slice(6)])
    assert.ok(!(await proves('brevo', { headers: { authorization: header } })), header)
})

test('SendGrid: a signature that the openssl command makes', {
  skip: lacking('openssl'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const [file, time] = [join(folder, 'key.pem'), '1794000000']
  writeFileSync(file, secrets.sendgrid.export({ format: 'pem', type: 'sec1' }))
  const signature = execFileSync('openssl', ['dgst', '-sha256', '-sign', file], { input: time + text })
  const headers = {
    'x-twilio-email-event-webhook-timestamp': time,
    'x-twilio-email-event-webhook-signature': signature.toString('base64'),
  }
  assert.ok(await proves('sendgrid', { headers }))
  assert.ok(!(await proves('sendgrid', { headers, body: text.trim() })))
})

test('SendGrid: the key, call and signature in the tests of its own library', async () => {
  const event = {
    email: 'hello@world.com',
    event: 'dropped',
    reason: 'Bounced Address',
    sg_event_id: 'ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA',
    sg_message_id: 'LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0',
    'smtp-id': '<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>',
    timestamp: 1600112492,
  }
  const headers = {
    'x-twilio-email-event-webhook-timestamp': '1600112502',
    'x-twilio-email-event-webhook-signature':
      'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=',
  }
  const by =
    'sendgrid:MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=='
  const body = `${JSON.stringify([event])}\r\n`
  assert.ok(await proves('sendgrid', { headers, body, by }))
  assert.ok(!(await proves('sendgrid', { headers, body: body.trim(), by })))
})

const provesSignature = (body: unknown, by: ReturnType<typeof readKeys>) => provesBody(eventsOf('mailgun'), body, by)

test('Mailgun: the signature in the body, if there is a key; that of the main account will do', async () => {
  const body = signBody({ 'event-data': {} }, secrets, atMs) as { signature: Record<string, unknown> }
  assert.ok(provesSignature(body, keys))
  assert.ok(provesSignature(body, readKeys(`${writeKeys(others)} ${writeKeys(secrets)}`)))
  assert.ok(provesSignature({}, readKeys(`basic:${secrets.basic}`)), 'no key is configured')
  const { signature } = body
  const parent = { ...signature, signature: 'f'.repeat(64), 'parent-signature': signature.signature }
  assert.ok(provesSignature({ signature: parent }, keys))
  assert.ok(provesSignature({ signature: { ...signature, timestamp: Number(signature.timestamp) } }, keys))
  for (const wrong of [
    undefined,
    null,
    [],
    'x',
    {},
    { ...signature, token: 'x' },
    { ...signature, timestamp: '1' },
    { ...signature, signature: '' },
    { ...signature, signature: { toString: 1 } },
    { ...signature, signature: String(signature.signature).toUpperCase() },
  ])
    assert.ok(!provesSignature({ signature: wrong }, keys), JSON.stringify(wrong))
  assert.ok(!provesSignature(body, readKeys(writeKeys(others))))
  assert.ok(!provesSignature(null, keys))
})
