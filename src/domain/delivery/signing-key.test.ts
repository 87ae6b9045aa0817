import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSelector } from './signing-key.ts'

test('a selector has the minute and the algorithm, and a number if it is taken', () => {
  const now = Date.UTC(2027, 0, 31, 14, 5, 59)
  assert.equal(newSelector('rsa', now, []), 'p202701311405r')
  assert.equal(newSelector('ed25519', now, ['p202701311405r']), 'p202701311405e')
  const taken = ['p202701311405r', 'p202701311405r2']
  assert.equal(newSelector('rsa', now, taken), 'p202701311405r3')
})
