import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeBytes } from './counts.ts'

test('sizes are in mebibytes below one gibibyte', () => {
  assert.equal(describeBytes(0), '0.0 MiB')
  assert.equal(describeBytes(300_000), '0.3 MiB')
  assert.equal(describeBytes(2 ** 30 - 1), '1024.0 MiB')
  assert.equal(describeBytes(2 ** 30), '1.0 GiB')
  assert.equal(describeBytes(75.13 * 2 ** 30), '75.1 GiB')
})
