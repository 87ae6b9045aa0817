import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EmailAddress } from '../request/email-address.ts'
import { findReferences, fitsReference, isBounceBase, type Reference, toBounceAddress } from './reference.ts'

const one = 'em_01m7x4pm530000dj4zwn0hsje3.0123456789' as Reference
const two = 'em_01m7x4pm540000dj4zwn0hsje3.zyxwvtsrqp' as Reference

test('references are found in addresses, headers and prose, in any case, each once', () => {
  const text = `bounces+${one}@acme.test, <${two.toUpperCase()}@acme.test>; again ${one}; SRS0=x=y=acme.test=b+${two}@z`
  assert.deepEqual(findReferences(text), [one, two])
})

test('what has another shape is no reference', () => {
  for (const text of ['', 'em_', one.slice(0, -1), one.replace('.', '-'), one.replace('0123', '0l23'), 'em_em_em_'])
    assert.deepEqual(findReferences(text), [], text)
  assert.deepEqual(findReferences(`em_em_${one}`), [one])
})

test('any text is read, and at most 20 references of it', () => {
  fc.assert(fc.property(fc.string(), (text) => findReferences(text).length <= 20))
  const many = Array.from({ length: 50 }, (_, n) => one.replace('3.', `${n % 10}.${Math.floor(n / 10)}`).slice(0, 40))
  assert.equal(findReferences(many.join(' ')).length, 20)
})

test('a bounce address takes the reference behind a plus, and has at most 64 octets in front of the @', () => {
  const of = (base: string) => toBounceAddress(base as EmailAddress, one)
  assert.equal(of('bounces@b.acme.test'), `bounces+${one}@b.acme.test`)
  assert.equal(of('bounces+@b.acme.test'), `bounces+${one}@b.acme.test`)
  assert.deepEqual(findReferences(of('em_@b.acme.test')), [one])
  const longest = `${'b'.repeat(23)}@acme.test`
  assert.equal(of(longest).split('@')[0]?.length, 64)
  assert.deepEqual([fitsReference(longest), fitsReference(`b${longest}`)], [true, false])
  assert.ok(fitsReference(longest.replace('@', '+@')))
  assert.deepEqual(
    [isBounceBase('a+@b.test'), isBounceBase('a@b.test'), isBounceBase('a+b@c.test')],
    [true, false, false],
  )
})
