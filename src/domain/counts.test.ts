import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeBytes, formatCount } from './counts.ts'

test('sizes are in mebibytes below one gibibyte', () => {
  assert.equal(describeBytes(0), '0.0 MiB')
  assert.equal(describeBytes(300_000), '0.3 MiB')
  assert.equal(describeBytes(2 ** 30 - 1), '1024.0 MiB')
  assert.equal(describeBytes(2 ** 30), '1.0 GiB')
  assert.equal(describeBytes(75.13 * 2 ** 30), '75.1 GiB')
})

test('counts have separators of thousands', () => {
  const expected = [
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [12_345, '12,345'],
    [-123, '-123'],
    [-1_234_567, '-1,234,567'],
    [1234.5678, '1,234.5678'],
  ] as const
  for (const [count, text] of expected) assert.equal(formatCount(count), text)
})
