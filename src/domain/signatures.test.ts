import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { lacking } from '../../test/support/installed.ts'
import { verifyStandardWebhook, verifyZitadel } from './signatures.ts'

const atSeconds = 1_780_000_000
const id = '8d2f0a52-6f5e-4a55-9d5f-0f6b1c9a7e11'
const text = '{"user":{"email":"ana@example.com"},"note":"é"}'
const [key, otherKey] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)]

/** A signature by the library that Supabase's own servers and the documents of Supabase use. */
const signStandard = (by = key, payload = text, signedId = id) =>
  new Webhook(by.toString('base64')).sign(signedId, new Date(atSeconds * 1000), payload)

type Call = { headers?: Record<string, string | undefined>; body?: Uint8Array; nowMs?: number; by?: Buffer }

function standard({ headers = {}, body = Buffer.from(text), nowMs = atSeconds * 1000, by = key }: Call = {}) {
  const signed = {
    'webhook-id': id,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': signStandard(),
  }
  return verifyStandardWebhook({ headers: { ...signed, ...headers }, body, nowMs }, by)
}

const signingKey = 'hT2mQv8Zx4Lk9Rb1Nc6Wd3Yf7Gj5Ps0A'

/** A signature by the openssl command, which takes the key as an argument. */
const signZitadel = (by = signingKey, payload = text, seconds: number | string = atSeconds) =>
  execFileSync('openssl', ['dgst', '-sha256', '-hmac', by, '-r'], { input: `${seconds}.${payload}` })
    .toString()
    .slice(0, 64)

type ZitadelCall = { header?: string | undefined; body?: Uint8Array; nowMs?: number; by?: string }

function zitadel(call: ZitadelCall) {
  const { header, body = Buffer.from(text), nowMs = atSeconds * 1000, by = signingKey } = call
  return verifyZitadel({ headers: { 'zitadel-signature': header }, body, nowMs }, Buffer.from(by))
}

test('a call is authentic if one of its signatures is, however they are separated', () => {
  assert.ok(standard())
  const [right, wrong] = [signStandard(), signStandard(otherKey)]
  assert.ok(standard({ by: otherKey, headers: { 'webhook-signature': wrong } }))
  for (const list of [
    [wrong, right],
    [right, wrong],
    ['v1a,x', 'v2,y', right],
    ['', right],
  ])
    for (const separator of [' ', ', '])
      assert.ok(standard({ headers: { 'webhook-signature': list.join(separator) } }), list.join(separator))
  const without = right.slice(3)
  for (const other of [wrong, without, `v2,${without}`, right.slice(0, -1), `${right}x`, `${right},${wrong}`, ''])
    assert.ok(!standard({ headers: { 'webhook-signature': other } }), other)
  assert.ok(!standard({ headers: { 'webhook-signature': signStandard(key, text, 'another') } }))
  assert.ok(!standard({ by: otherKey }))
})

test('a call that lacks a header is not authentic', () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    assert.ok(!standard({ headers: { [name]: undefined } }), name)
})

test('a body that is changed by one byte is not authentic', {
  skip: lacking('openssl'),
}, () => {
  const header = `t=${atSeconds},v1=${signZitadel()}`
  const whole = Buffer.from(text)
  for (let at = 0; at < whole.length; at++) {
    const body = Buffer.from(whole)
    body[at] = (body[at] ?? 0) ^ 1
    assert.ok(!standard({ body }))
    assert.ok(!zitadel({ header, body }))
  }
  for (const body of [whole.subarray(1), whole.subarray(0, -1), Buffer.concat([whole, Buffer.from(' ')])]) {
    assert.ok(!standard({ body }))
    assert.ok(!zitadel({ header, body }))
  }
})

test('a call is authentic for 300 seconds, and if it is as far ahead', {
  skip: lacking('openssl'),
}, () => {
  const header = `t=${atSeconds},v1=${signZitadel()}`
  const cases: [nowMs: number, isAuthentic: boolean][] = [
    [(atSeconds + 300) * 1000 + 999, true],
    [(atSeconds + 301) * 1000, false],
    [(atSeconds - 300) * 1000, true],
    [(atSeconds - 300) * 1000 - 1, false],
  ]
  for (const [nowMs, isAuthentic] of cases) {
    assert.equal(standard({ nowMs }), isAuthentic, `${nowMs}`)
    assert.equal(zitadel({ header, nowMs }), isAuthentic, `${nowMs}`)
  }
})

test('the time of a call is written in digits', { skip: lacking('openssl') }, () => {
  for (const time of [`+${atSeconds}`, ` ${atSeconds}`, `${atSeconds}.0`, '0x6a18a500', '1.78e9', '', 'NaN']) {
    const signature = `v1,${signBytes(`${id}.${time}.${text}`)}`
    assert.ok(!standard({ headers: { 'webhook-timestamp': time, 'webhook-signature': signature } }), time)
    assert.ok(!zitadel({ header: `t=${time},v1=${signZitadel(signingKey, text, time)}` }), time)
  }
})

const signBytes = (content: string): string =>
  execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key.toString('hex')}`, '-binary'], {
    input: content,
  }).toString('base64')

test('a part of a signed body cannot be presented as the id', {
  skip: lacking('openssl'),
}, () => {
  const inner = `{"a":"b.${atSeconds}.{}`
  const signature = `v1,${signBytes(`${id}.1.${inner}`)}`
  const headers = { 'webhook-id': `${id}.1.{"a":"b`, 'webhook-signature': signature }
  assert.ok(!standard({ headers, body: Buffer.from('{}') }))
  assert.ok(
    !standard({
      headers: { 'webhook-id': `${id}.x`, 'webhook-signature': signStandard(key, text, `${id}.x`) },
    }),
  )
})

test('a header that is too long is not taken apart', {
  skip: lacking('openssl'),
}, () => {
  const fill = (signature: string, separator: string, length: number) =>
    `${signature}${separator}${'x'.repeat(length - signature.length - 1)}`
  const signature = signStandard()
  assert.ok(standard({ headers: { 'webhook-signature': fill(signature, ' ', 1024) } }))
  assert.ok(!standard({ headers: { 'webhook-signature': fill(signature, ' ', 1025) } }))
  const header = `t=${atSeconds},v1=${signZitadel()}`
  assert.ok(zitadel({ header: fill(header, ',', 1024) }))
  assert.ok(!zitadel({ header: fill(header, ',', 1025) }))
  const [most, more] = ['a'.repeat(128), 'a'.repeat(129)]
  const identified = (name: string) =>
    standard({ headers: { 'webhook-id': name, 'webhook-signature': signStandard(key, text, name) } })
  assert.ok(identified(most))
  assert.ok(!identified(more))
})

test('the signature of Zitadel is the one that openssl makes', {
  skip: lacking('openssl'),
}, () => {
  const [right, wrong] = [`v1=${signZitadel()}`, `v1=${signZitadel('another key')}`]
  for (const list of [[right], [wrong, right], [right, wrong], ['v2=x', right]])
    assert.ok(zitadel({ header: `t=${atSeconds},${list.join(',')}` }), list.join())
  for (const header of [
    `t=${atSeconds},${wrong}`,
    `t=${atSeconds},${right.slice(3)}`,
    `t=${atSeconds},v0${right.slice(2)}`,
    `t=${atSeconds},${right.toUpperCase()}`,
    `t=${atSeconds + 1},${right}`,
    `t=${atSeconds + 1},t=${atSeconds},${right}`,
    `${right},t=${atSeconds}`,
    `${atSeconds},${right}`,
    `t=${atSeconds}`,
    right,
    '',
    undefined,
  ])
    assert.ok(!zitadel({ header }), String(header))
  assert.ok(!zitadel({ header: `t=${atSeconds},${right}`, by: 'another key' }))
})

test('no header makes a check throw, and none is authentic by chance', () => {
  const piece = fc.constantFrom('v1,', 'v1=', 't=', ',', ' ', ', ', String(atSeconds), 'é', '\ud800', '=', 'AAAA')
  const header = fc.option(
    fc.oneof(
      fc.string(),
      fc.array(piece).map((pieces) => pieces.join('')),
    ),
    { nil: undefined },
  )
  fc.assert(
    fc.property(header, header, header, (one, two, three) => {
      assert.ok(!standard({ headers: { 'webhook-signature': one } }))
      assert.ok(!standard({ headers: { 'webhook-id': one, 'webhook-timestamp': two, 'webhook-signature': three } }))
      assert.ok(!zitadel({ header: one }))
    }),
    { numRuns: 1000 },
  )
})
