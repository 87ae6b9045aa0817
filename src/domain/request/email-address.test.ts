import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readCorpus } from '../../../test/support/corpus.ts'
import {
  type EmailAddress,
  foldMailbox,
  limitAddress,
  parseEmailAddress,
  parsePlainAddress,
  readDomain,
} from './email-address.ts'

test('every address of the valid corpus is accepted in its normal form', () => {
  for (const [raw, kept] of readCorpus('email-address.valid')) {
    const address = parseEmailAddress(raw, 'to')
    assert.ok(address.ok, `${raw}: ${JSON.stringify(address)}`)
    assert.equal(address.value, kept ?? raw)
  }
})

test('row 42: every address of the invalid corpus is refused for its reason', () => {
  for (const [code, raw = ''] of readCorpus('email-address.invalid')) {
    const address = parseEmailAddress(raw, 'to')
    assert.ok(!address.ok, raw)
    assert.deepEqual(
      address.issues.map((issue) => issue.code),
      [code],
      raw,
    )
  }
})

test('the corpora hold at least 60 addresses', () => {
  assert.ok(readCorpus('email-address.valid').length + readCorpus('email-address.invalid').length >= 60)
})

test('no input throws, and what is accepted is one mailbox that SMTP can carry', () => {
  const part = fc.oneof(
    fc.constantFrom('a', '.', '@', 'example.com', 'bücher.de', '"', ' ', '<', '\r\n', '%61', '/', '+', 'xn--', '例'),
    fc.string({ unit: 'binary', maxLength: 3 }),
  )
  const near = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''))
  const mailbox = fc.emailAddress()
  let accepted = 0
  fc.assert(
    fc.property(fc.oneof(near, mailbox, fc.string({ unit: 'binary' })), (raw) => {
      const address = parseEmailAddress(raw, 'to')
      if (!address.ok) return
      accepted += 1
      assert.match(address.value, /^[\x21-\x7e]{3,254}$/)
      assert.doesNotMatch(address.value.replace(/^"[^"]+"@/, '@'), /[\s<>(),;:\\"[\]]/)
      const [local = '', domain = '', ...more] = address.value.split('@')
      assert.deepEqual(more, [])
      assert.ok(local.length >= 1 && local.length <= 64)
      assert.match(domain, /^[a-z0-9-]+(\.[a-z0-9-]+)+$/)
      const again = parseEmailAddress(address.value, 'to')
      assert.ok(again.ok && again.value === address.value, 'the normal form is its own normal form')
    }),
    { numRuns: 10_000 },
  )
  assert.ok(accepted > 1000, `only ${accepted} inputs were accepted`)
})

test('limits fold case, tags and the dots of Gmail', () => {
  const fold = (text: string) => foldMailbox(text as EmailAddress)
  assert.equal(limitAddress('Ada+x@example.com' as EmailAddress), 'ada+x@example.com')
  assert.equal(fold('Ada+x+y@example.com'), 'ada@example.com')
  assert.equal(fold('a.d.a+x@googlemail.com'), 'ada@gmail.com')
  assert.equal(fold('a.d.a@example.com'), 'a.d.a@example.com')
  assert.equal(fold('+x@example.com'), '+x@example.com')
  assert.equal(fold('"a..b+x"@docomo.ne.jp'), 'a..b@docomo.ne.jp')
})

test('an address with quotes is no address of a sender', () => {
  assert.equal(parseEmailAddress('"a..b"@docomo.ne.jp', 'to').ok, true)
  assert.equal(parsePlainAddress('"a..b"@docomo.ne.jp', 'from').ok, false)
  assert.equal(parsePlainAddress('a.b@docomo.ne.jp', 'from').ok, true)
})

const codeOf = (raw: string) => {
  const address = parseEmailAddress(raw, 'to')
  return address.ok ? 'ok' : address.issues.map(({ field, code }) => `${field} ${code}`).join()
}

test('an address may have 254 octets, its domain as A-labels included', () => {
  const local = 'a'.repeat(64)
  const domain = (length: number) =>
    `${'d'.repeat(length - 128)}.${'e'.repeat(60)}.${'f'.repeat(63)}.com`.slice(-length)
  assert.equal(codeOf(`${local}@${domain(189)}`), 'ok')
  assert.equal(codeOf(`${local}@${domain(190)}`), 'to too_long')
  const wide = (length: number) => `${'ü'.repeat(length)}.${'ö'.repeat(length)}.${'ä'.repeat(length)}.de`
  assert.ok(`${local}@${wide(56)}`.length < 254)
  assert.equal(codeOf(`${local}@${wide(55)}`), 'ok', '253 octets as A-labels')
  assert.equal(codeOf(`${local}@${wide(56)}`), 'to invalid_domain', '256 octets as A-labels')
})

test('a last label of digits alone is refused, one with digits in it is not', () => {
  assert.equal(codeOf('a@example.123'), 'to invalid_domain')
  assert.equal(codeOf('a@example.1'), 'to invalid_domain')
  assert.equal(codeOf('a@example.c0m'), 'ok')
  assert.equal(codeOf('a@example.1a'), 'ok')
  assert.equal(codeOf('a@example.a1'), 'ok')
})

test('the domain of an address, and Gmail under both of its names', () => {
  assert.equal(readDomain('a@b.test' as EmailAddress), 'b.test')
  assert.equal(foldMailbox('a.b+c@gmail.com' as EmailAddress), 'ab@gmail.com')
  assert.equal(foldMailbox('...@gmail.com' as EmailAddress), '...@gmail.com')
})
