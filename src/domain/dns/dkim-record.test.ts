import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDkimRecord, judgeDkimRecord, quoteRecord } from './dkim-record.ts'

const key = { algorithm: 'rsa', publicKey: `${'MIIB+/'.repeat(60)}AQ==` } as const
const right = formatDkimRecord(key.algorithm, key.publicKey)

test('a long record is written as strings of at most 255 characters, which join to it', () => {
  const strings = quoteRecord(right).match(/"[^"]*"/g) ?? []
  assert.deepEqual(
    strings.map(({ length }) => length - 2),
    [255, right.length - 255],
  )
  assert.equal(strings.map((text) => text.slice(1, -1)).join(''), right)
})

for (const [what, records, result, message] of [
  ['the record', [right], 'ok', /in DNS/],
  ['a key with spaces', [right.replace('AQ==', ' AQ==')], 'ok', /in DNS/],
  ['a record without v and k', [`p=${key.publicKey}`], 'ok', /in DNS/],
  ['a record that tests', [`${right}; t=s:y`], 'warn', /"t=y"/],
  ['a record for its own domain', [`${right}; t=s`], 'ok', /in DNS/],
  ['a record that tests, with spaces', [`${right}; t=s : y`], 'warn', /"t=y"/],
  ['a record for email with SHA-256', [`${right}; s=x:email; h=sha1 : sha256;`], 'ok', /in DNS/],
  ['a record for all services', [`${right}; s=*`], 'ok', /in DNS/],
  ['a record for another service', [`${right}; s=tlsrpt`], 'fail', /"s="/],
  ['a record for SHA-1', [`${right}; h=sha1`], 'fail', /"h="/],
  ['a record with two keys', [`${right}; p=MIIC`], 'fail', /not a DKIM record/],
  ['a version at the end', [`p=${key.publicKey}; v=DKIM1`], 'fail', /not a DKIM record/],
  ['a tag in capitals, which is another tag', [right.replace('p=', 'P=')], 'fail', /revokes/],
  ['two records', [right, right], 'fail', /several/],
  ['another key', [right.replace('MIIB', 'MIIC')], 'fail', /another key/],
  ['another algorithm', [right.replace('k=rsa', 'k=ed25519')], 'fail', /another key/],
  ['a revoked key', ['v=DKIM1; p='], 'fail', /revokes/],
  ['another version', [right.replace('DKIM1', 'DKIM2')], 'fail', /not a DKIM record/],
  ['a no-break space in front of a tag', [right.replace('; p=', ';\u00a0p=')], 'fail', /invisible characters/],
  ['a no-break space in the key', [right.replace('MIIB', 'MI\u00a0IB')], 'fail', /no part of it.*invisible/],
  ['a mark in front', [`\ufeff${right}`], 'fail', /invisible characters/],
  ['quotes in the key', [right.replace('MIIB', 'MI" "IB')], 'fail', /no part of it.*quotes/],
  ['a key in PEM', [right.replace('p=', 'p=-----BEGIN PUBLIC KEY-----')], 'fail', /no part of it/],
  ['a key that is cut', [right.slice(0, 200)], 'fail', /only \d+ of the \d+ characters/],
  ['a key in small letters', [right.replace(/p=.*/, (key) => key.toLowerCase())], 'fail', /upper and lower case/],
  ['another text', ['hello world'], 'fail', /not a DKIM record/],
] as const)
  test(`${what}: ${result}`, () => {
    const verdict = judgeDkimRecord({ kind: 'found', records: [...records] }, key)
    assert.equal(verdict.result, result)
    assert.match(verdict.message, message)
  })

test('no record fails; DNS that does not answer says nothing', () => {
  assert.equal(judgeDkimRecord({ kind: 'absent' }, key).result, 'fail')
  assert.equal(judgeDkimRecord({ kind: 'unknown', reason: 'no answer' }, key).result, 'unknown')
})
