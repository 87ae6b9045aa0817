import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languageOf } from '../locales/locales.ts'
import { writeLetter } from './write-letter.ts'

test('to agree to a change of address is private, also without a code', () => {
  const { strings } = languageOf('en')
  const letter = (purpose?: 'address_change') =>
    writeLetter(strings, {
      type: 'email_verification',
      app: 'Acme',
      content: purpose === undefined ? {} : { purpose },
      code: 'none',
      expiry: { duration: '1 hour', dateTime: 'today' },
    }).notes
  assert.ok(letter('address_change').includes(strings.keepPrivate))
  assert.ok(!letter().includes(strings.keepPrivate))
})
