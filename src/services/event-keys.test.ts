import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { newSecrets, writeKeys } from '../../test/support/provider-calls.ts'
import { parseEventKeys, provenServices } from './event-keys.ts'

const secrets = newSecrets()
const kinds = (text: string) => {
  const { faults, keys } = parseEventKeys(text)
  assert.deepEqual(faults, [])
  return keys.map(({ proof }) => proof)
}

test('keys of every kind, several of a kind, in any order and on any line', () => {
  assert.deepEqual(kinds(writeKeys(secrets)), ['basic', 'resend', 'sendgrid', 'mailgun'])
  const basic = `basic:${secrets.basic}`
  assert.deepEqual(kinds(` ${basic}:with:colons \n\n ${basic}\t`), ['basic', 'basic'])
})

test('the providers whose calls the keys can prove', () => {
  const provers = (text: string) => provenServices(parseEventKeys(text).keys).map(({ name }) => name)
  assert.deepEqual(provers(''), [])
  assert.deepEqual(provers(`resend:whsec_${secrets.resend}`), ['resend'])
  assert.deepEqual(provers(`sendgrid:${secrets.sendgridPublic}`), ['sendgrid'])
  assert.deepEqual(provers(`basic:${secrets.basic}`), ['postmark', 'mailgun', 'brevo', 'generic'])
})

test('what is no key is refused, by its place and without a word of it', () => {
  const publicKey = (curve: string) =>
    generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export({ format: 'der', type: 'spki' })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey
  const wrong = [
    'secret-4711-0123456789',
    'postmark:secret-4711-0123456789',
    'constructor:secret-4711-0123456789',
    'basic:secret-4711-0123456789',
    'basic:user:secret-4711',
    'basic::secret-4711-0123456789',
    'resend:secret-4711-0123456789',
    'resend:whsec_',
    'resend:whsec_secret4711',
    'resend:whsec_secret-4711-0123456789-0123456789',
    'sendgrid:secret-4711-0123456789',
    `sendgrid:${publicKey('P-384').toString('base64')}`,
    `sendgrid:${rsa.export({ format: 'der', type: 'spki' }).toString('base64')}`,
    'mailgun:secret-4711',
  ]
  for (const entry of wrong) {
    const { faults } = parseEventKeys(`basic:${secrets.basic} ${entry}`)
    assert.match(faults.join(), /^key 2 must be /, entry)
    assert.doesNotMatch(faults.join(), /4711|user/, entry)
  }
  assert.match(parseEventKeys(`mailgun:${secrets.mailgun}`).faults.join(), /^mailgun: needs basic: too/)
})
