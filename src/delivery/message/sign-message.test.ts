import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { test } from 'node:test'
import { readTags, verifySignatures } from '../../../test/support/dkim.ts'
import { newRing } from '../../../test/support/service.ts'
import { dkimName, formatDkimRecord } from '../../domain/dns/dkim-record.ts'
import { makeSigningKey, openSigningKey } from '../../store/crypto/signing-key.ts'
import { type Signer, signMessage } from './sign-message.ts'

const message = Buffer.from(
  [
    'From: "Acme" <auth@acme.test>',
    'To: ada@example.com',
    'Subject: =?UTF-8?Q?Ihr_Anmelde-Link_f=C3=BCr?=',
    ' =?UTF-8?Q?_Acme?=',
    'Date: Wed, 25 Nov 2026 11:00:00 +0000',
    'Message-ID: <em_1.a@acme.test>',
    'Expires: Wed, 25 Nov 2026 11:15:00 +0000',
    'MIME-Version: 1.0',
    'Auto-Submitted: auto-generated',
    'Feedback-ID: magic_link:acme:auth:postern',
    'X-Entity-Ref-ID: em_1.a',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'A line that ends in a space ',
    '',
    'The last line',
    '',
  ].join('\r\n'),
)

const ring = newRing()
const records = new Map<string, string>()
async function newSigner(selector: string, algorithm: 'rsa' | 'ed25519'): Promise<Signer> {
  const made = await makeSigningKey(ring, { domain: 'acme.test', selector, algorithm })
  records.set(dkimName(selector, 'acme.test'), formatDkimRecord(algorithm, made.publicKey))
  return { domain: 'acme.test', selector, algorithm, key: openSigningKey(ring, made) }
}
const [rsa, elliptic] = [await newSigner('r', 'rsa'), await newSigner('e', 'ed25519')]
const signedAt = Date.UTC(2026, 10, 25) / 1000
const sign = (options: { relayDates?: boolean; signers?: Signer[] } = {}) =>
  signMessage(message, options.signers ?? [rsa, elliptic], {
    signedAt,
    expiresAt: signedAt + 1000,
    relayDates: options.relayDates ?? false,
  })
const judge = (bytes: Buffer) => verifySignatures(bytes, (name) => records.get(name))
const alter = (bytes: Buffer, from: string, to: string) => {
  const text = bytes.toString('latin1')
  assert.ok(text.includes(from))
  return Buffer.from(text.replace(from, to), 'latin1')
}

test('both algorithms sign, each for itself, in front of the message', async () => {
  const bytes = await sign()
  assert.deepEqual(judge(bytes), ['pass', 'pass'])
  assert.ok(bytes.subarray(-message.length).equals(message))
  const [first = ''] = bytes.toString().split('\r\nDKIM-Signature:')
  const tags = readTags(first.slice('DKIM-Signature:'.length))
  assert.deepEqual(
    [tags.v, tags.a, tags.c, tags.d, tags.s, tags.t, tags.x, tags.l, tags.i],
    [
      '1',
      'rsa-sha256',
      'relaxed/simple',
      'acme.test',
      'r',
      String(signedAt),
      String(signedAt + 1000),
      undefined,
      undefined,
    ],
  )
  for (const line of bytes.toString().split('\r\n')) assert.ok(line.length <= 78, line)
  assert.deepEqual(judge(await sign({ signers: [elliptic] })), ['pass'])
  const names = (/ h=([^;]*);/.exec(first.replace(/\r\n /g, ' '))?.[1] ?? '').split(':')
  for (const [n, name] of names.entries())
    assert.equal(name.startsWith(' '), n > 0 && n % 5 === 0, `five names in a line: ${names}`)
})

for (const [what, from, to, result] of [
  ['the body', 'The last line', 'the last line', 'the body was altered'],
  ['a space at the end of a line', 'space \r\n', 'space\r\n', 'the body was altered'],
  ['a header', 'Anmelde', 'anmelde', 'a header was altered'],
  ['the id for reports', 'X-Entity-Ref-ID: em_1', 'X-Entity-Ref-ID: em_2', 'a header was altered'],
  ['the type of feedback', 'magic_link:acme', 'magic_link:shop', 'a header was altered'],
  ['an automatic reply', 'Auto-Submitted: auto-generated', 'Auto-Submitted: no', 'a header was altered'],
  ['the time at which the link expires', '11:15:00', '11:45:00', 'a header was altered'],
  ['the time of signing', `t=${signedAt}`, `t=${signedAt + 1}`, 'a header was altered'],
] as const)
  test(`a signature does not hold once somebody alters ${what}`, async () => {
    assert.deepEqual(judge(alter(await sign(), from, to)), [result, what === 'the time of signing' ? 'pass' : result])
  })

for (const field of [
  'From: <evil@acme.test>',
  'To: eve@example.com',
  'Cc: eve@example.com',
  'Subject: x',
  'Date: Wed, 25 Nov 2026 12:00:00 +0000',
  'Expires: Thu, 26 Nov 2026 12:00:00 +0000',
  'Reply-To: eve@example.com',
  'Message-ID: <x@acme.test>',
  'Content-Type: text/html',
  'MIME-Version: 1.0',
  'Sender: eve@example.com',
  'List-Unsubscribe: <https://evil.test/>',
  'Content-Transfer-Encoding: base64',
])
  test(`a second or a new field does not hold: ${field}`, async () => {
    const bytes = await sign()
    for (const added of [
      Buffer.concat([Buffer.from(`${field}\r\n`), bytes]),
      alter(bytes, 'MIME-Version', `${field}\r\nMIME-Version`),
    ])
      assert.deepEqual(judge(added), ['a header was altered', 'a header was altered'])
  })

test('folding and white space of fields may change, since relays fold', async () => {
  const folded = alter(await sign(), 'Feedback-ID: magic', 'feedback-id:\r\n   magic')
  assert.deepEqual(judge(folded), ['pass', 'pass'])
})

test('where a relay sets the Date and the Message-ID, the signature does not cover them', async () => {
  const replaced = async (relayDates: boolean) => {
    const bytes = alter(await sign({ relayDates }), 'Date: Wed, 25', 'Date: Thu, 26')
    return judge(alter(bytes, '<em_1.a@acme.test>', '<0100@email.amazonses.com>'))
  }
  assert.deepEqual(await replaced(true), ['pass', 'pass'])
  assert.deepEqual(await replaced(false), ['a header was altered', 'a header was altered'])
  const added = alter(await sign({ relayDates: true }), 'Subject: ', 'Sender: relay@x.test\r\nSubject: ')
  assert.deepEqual(judge(added), ['pass', 'pass'], 'and not what such relays add')
  const moved = alter(await sign({ relayDates: true }), 'Subject: ', 'Subject: x')
  assert.deepEqual(judge(moved), ['a header was altered', 'a header was altered'])
})

test('a sealed key is a private key in PKCS #8, of 2048 bits for RSA', async () => {
  const pem = rsa.key.export({ type: 'pkcs8', format: 'pem' })
  assert.equal(createPrivateKey(pem).asymmetricKeyDetails?.modulusLength, 2048)
})
