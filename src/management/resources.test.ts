import assert from 'node:assert/strict'
import { test } from 'node:test'
import { presentUsage } from './resources.ts'

test('the counts of a day tell ends from refusals', () => {
  const counts = { accepted: 5, delivered: 3, expired: 1, url_not_allowed: 2, key_rate_limited: 7 }
  assert.deepEqual(presentUsage({ day: '2026-01-31', counts }), {
    ...{
      day: '2026-01-31',
      accepted: 5,
      delivered: 3,
      failed: 0,
      expired: 1,
      cancelled: 0,
      bounced: 0,
      complained: 0,
      suppressed: 0,
    },
    refused: { url_not_allowed: 2, key_rate_limited: 7 },
  })
})
