/** The client's grammar of codes is that of the service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isCode as isServiceCode } from '../../src/domain/request/one-time-code.ts'
import { isCode } from '../src/one-time-code.ts'

test('the client takes for a code what the service takes for one', () => {
  const text = fc.string({
    unit: fc.constantFrom('1', '9', 'a', 'Z', '-', ' ', '_'),
    maxLength: 14,
    size: 'max',
  })
  const digits = fc.string({ unit: fc.constantFrom('0', '7'), maxLength: 13, size: 'max' })
  fc.assert(
    fc.property(fc.oneof(text, digits), (value) => assert.equal(isCode(value), isServiceCode(value), value)),
    { numRuns: 5000 },
  )
})
