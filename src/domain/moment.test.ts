import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sinceMs } from './moment.ts'

const begun = { monotonicMs: 1000, wallMs: 500_000 }

test('a time is measured by the clock that says more', () => {
  assert.equal(sinceMs(begun, { monotonicMs: 1400, wallMs: 500_300 }), 400)
  assert.equal(sinceMs(begun, { monotonicMs: 1400, wallMs: 500_000 + 3_600_000 }), 3_600_000, 'suspended')
  assert.equal(sinceMs(begun, { monotonicMs: 1400, wallMs: 400_000 }), 400, 'set back')
})
