import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hashDeliveryKey, newDeliveryKey, parseAuthorization } from './delivery-key.ts'

test('a new key has the stated shape, and its checksum holds', () => {
  for (let i = 0; i < 200; i++) {
    const key = newDeliveryKey()
    assert.match(key, /^pst_[0-9A-Za-z]{49}$/)
    assert.deepEqual(parseAuthorization(`Bearer ${key}`), { kind: 'key', hash: hashDeliveryKey(key) })
  }
})

test('the scheme is read in any case', () => {
  const key = newDeliveryKey()
  for (const scheme of ['bearer', 'BEARER', 'BeArEr'])
    assert.equal(parseAuthorization(`${scheme} ${key}`).kind, 'key')
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
      assert.equal(parseAuthorization(`Bearer ${changed}`).kind, changed === key ? 'key' : 'mistyped')
    }),
  )
})

test('two tokens, as joined headers have, are mistyped', () => {
  const key = newDeliveryKey()
  assert.equal(parseAuthorization(`Bearer ${key}, Bearer ${key}`).kind, 'mistyped')
})
