/** Quotes what an email holds, in the ways in which servers write it: nothing of it stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EmailAddress } from '../request/email-address.ts'
import type { EmailContent } from '../request/email-content.ts'
import { redact } from './redact.ts'

const base62 = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz']
const secret = (length: number) =>
  fc.array(fc.constantFrom(...base62), { minLength: length, maxLength: length }).map((letters) => letters.join(''))
/** A local part of which no ordinary word is a part. */
const local = fc
  .array(fc.constantFrom(...'qxzvkj'), { minLength: 6, maxLength: 12 })
  .map((letters) => `${letters.slice(0, 3).join('')}.${letters.slice(3).join('')}`)
const digits = fc.integer({ min: 100_000, max: 99_999_999 }).map(String)

const encode = (text: string, sign: string) =>
  text.replace(/[^A-Za-z0-9]/g, (c) => `${sign}${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
const fold = (text: string, between: string) => (text.match(/.{1,9}/g) ?? []).join(between)

const spellings: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => encode(text, '%'),
  (text) => encode(text, '='),
  (text) => encode(encode(text, '%'), '%'),
  (text) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join(''),
  (text) => [...text].map((c) => `&#${c.charCodeAt(0)};`).join(''),
  (text) => fold(text, '=\r\n'),
  (text) => fold(text, '\r\n554-'),
  (text) => fold(text, '\r\n554 5.7.1 '),
  (text) => fold(text, ' '),
  (text) => [...text].join('\u200b'),
  (text) => `"${text}"`,
  (text) => `<${text}>`,
  (text) => [...text].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join(''),
  (text) => Buffer.from(text).toString('base64'),
  (text) => Buffer.from(text).toString('hex'),
]

/** Whether five letters of a secret stand in a row in a text. */
const shares = (text: string, value: string): boolean => {
  const letters = (of: string) => of.toLowerCase().replace(/[^a-z0-9]/g, '')
  const [shown, hidden] = [letters(text.replace(/<\w+>/g, ' ')), letters(value)]
  return Array.from({ length: hidden.length - 4 }, (_, n) => hidden.slice(n, n + 5)).some((part) =>
    shown.includes(part),
  )
}

const spelling = fc.constantFrom(...spellings)

test('nothing of the link, the token, the local part and the code stays in a reply', () => {
  fc.assert(
    fc.property(secret(32), secret(24), local, digits, spelling, (sealed, token, name, code, spell) => {
      const email: EmailContent = {
        to: `${name}@example.com` as EmailAddress,
        url: `https://links.acme.test/acme/${sealed}?token=${token}`,
        code,
        messageIdDomain: 'acme.test',
      }
      for (const quoted of [sealed, token, name, code, `links.acme.test/acme/${sealed}`, email.to]) {
        const text = redact(`554 5.7.1 spam: ${spell(quoted)} it said`, { kind: 'reply', email })
        assert.ok(text.startsWith('554 5.7.1 spam: '), text)
        for (const value of [sealed, token, name, code]) assert.ok(!shares(text, value), `${spell(quoted)}: ${text}`)
        assert.ok(!text.includes(spell(quoted)), text)
      }
    }),
    { seed: 4711, numRuns: 300 },
  )
})

test('nor in a report, of which only the recipient is known', () => {
  fc.assert(
    fc.property(secret(32), local, digits, spelling, (sealed, name, code, spell) => {
      const addresses = [`${name}@example.com`]
      for (const quoted of [`links.acme.test/acme/${sealed}`, name, addresses[0] ?? '', code]) {
        const text = redact(`554 5.7.1 spam: ${spell(quoted)} it said`, { kind: 'report', addresses })
        for (const value of [name, code]) assert.ok(!shares(text, value), `${spell(quoted)}: ${text}`)
        assert.ok(!text.toLowerCase().includes(sealed.slice(0, 12).toLowerCase()), text)
      }
    }),
    { seed: 4711, numRuns: 300 },
  )
})

const fill = (text: string) => text.repeat(Math.ceil(1_000_000 / text.length))
const hostile = [
  'a',
  '@',
  'a@',
  '"@',
  '"a" @ ',
  ')@',
  '1 ',
  '1-',
  '12:',
  'a=',
  '%25',
  '=41',
  '&#64;',
  '<',
  '://',
  'a/',
  'a.',
  'code ',
  ' at ',
  '\u200b',
  'ﷺ',
  'İ',
  '[.]',
  'eyJ',
  'YTE',
  '6131',
  '\\u0061',
  '<a',
  'A B ',
  '1:',
  'AB1 ',
  'AaBb',
  'psl_',
]

for (const text of hostile)
  test(`${JSON.stringify(text)}, a million characters of it: patterns see a bounded text`, () => {
    const { exec } = RegExp.prototype
    let seen = 0
    RegExp.prototype.exec = function (given) {
      seen += 1
      assert.ok(given.length <= 2000 * 18, `${given.length}`)
      return exec.call(this, given)
    }
    const email: EmailContent = {
      to: 'aaa@example.com' as EmailAddress,
      url: `https://a.test/${fill('a1').slice(0, 2000)}`,
      code: '1111',
      messageIdDomain: 'a',
    }
    try {
      for (const source of [
        { kind: 'reply', email },
        { kind: 'report', addresses: ['a@a', email.to] },
        { kind: 'other' },
      ] as const)
        assert.ok(redact(fill(text), source).length <= 300)
    } finally {
      RegExp.prototype.exec = exec
    }
    assert.ok(seen <= 1_000_000, `${seen}`)
  })
