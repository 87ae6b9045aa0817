import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { newBearer, type Prefix } from '../bearer.ts'
import { hashDeliveryKey, newDeliveryKey, parseAuthorization } from './delivery-key.ts'

test('a new key has the stated shape, and its checksum holds', () => {
  for (let i = 0; i < 200; i++) {
    const key = newDeliveryKey()
    assert.match(key, /^pst_[0-9A-Za-z]{49}$/)
    assert.deepEqual(parseAuthorization(`Bearer ${key}`), { kind: 'secret', hash: hashDeliveryKey(key) })
  }
})

test('the scheme is read in any case', () => {
  const key = newDeliveryKey()
  for (const scheme of ['bearer', 'BEARER', 'BeArEr'])
    assert.equal(parseAuthorization(`${scheme} ${key}`).kind, 'secret')
})

test('what is no bearer token is missing', () => {
  for (const header of [undefined, '', 'Basic dTpw', newDeliveryKey(), 'Bearer', 'Token x']) {
    assert.equal(parseAuthorization(header).kind, 'missing', String(header))
  }
})

test('any one changed character is noticed by the checksum', () => {
  const key = newDeliveryKey()
  const position = fc.integer({ min: 4, max: key.length - 1 })
  const character = fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
  fc.assert(
    fc.property(position, character, (at, other) => {
      const changed = key.slice(0, at) + other + key.slice(at + 1)
      assert.equal(parseAuthorization(`Bearer ${changed}`).kind, changed === key ? 'secret' : 'mistyped')
    }),
  )
})

test('a text of another shape is mistyped, although its checksum holds', () => {
  for (const prefix of ['pst_0', 'pst_-', 'pst', 'xst_'])
    assert.equal(parseAuthorization(`Bearer ${newBearer(prefix as Prefix)}`).kind, 'mistyped', prefix)
})

test('two tokens, as joined headers have, are mistyped', () => {
  const key = newDeliveryKey()
  assert.equal(parseAuthorization(`Bearer ${key}, Bearer ${key}`).kind, 'mistyped')
})

test('a key is its random bytes in base 62 with their checksum, and its hash is SHA-256', () => {
  const random = (bytes: number) => Buffer.alloc(bytes, 7)
  const key = newDeliveryKey(random)
  assert.equal(key, newDeliveryKey(random))
  assert.notEqual(
    key,
    newDeliveryKey((bytes) => Buffer.alloc(bytes, 8)),
  )
  assert.equal(newDeliveryKey((bytes) => Buffer.alloc(bytes)).slice(4, -6), '0'.repeat(43))
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const value = [...key.slice(4, -6)].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n)
  assert.equal(value, BigInt(`0x${'07'.repeat(32)}`))
  assert.equal(hashDeliveryKey(key), createHash('sha256').update(key).digest('base64url'))
})

test('white space around a token is no part of it, anything else is', () => {
  const key = newDeliveryKey()
  assert.equal(parseAuthorization(`  Bearer   ${key}  `).kind, 'secret')
  for (const header of [`Bearer x${key}`, `Bearer ${key}x`, `Bearer ${key} x`])
    assert.equal(parseAuthorization(header).kind, 'mistyped', header)
  assert.equal(parseAuthorization(`Basic bearer ${key}`).kind, 'missing')
})
