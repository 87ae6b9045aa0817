import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLimit } from './options.ts'

test('a limit is a whole number from 1 to 10000', () => {
  assert.deepEqual(['1', '10000'].map(parseLimit), [1, 10_000])
  for (const text of ['0', '10001', '1.5', 'many', '-1'])
    assert.throws(() => parseLimit(text), { name: 'UsageError' }, text)
})
