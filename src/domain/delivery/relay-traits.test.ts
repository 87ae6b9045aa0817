import assert from 'node:assert/strict'
import { test } from 'node:test'
import { combineTraits, plainRelay } from './relay-traits.ts'

test('several relays together have what the strictest of them needs', () => {
  const [all, dates] = [
    { rewrites: 'all', envelope: 'relay', include: null },
    { rewrites: 'dates', envelope: 'from', include: 'amazonses.com' },
  ] as const
  assert.deepEqual(combineTraits([]), plainRelay)
  assert.deepEqual(combineTraits([all, all]), all)
  assert.deepEqual(combineTraits([all, dates]), {
    rewrites: 'dates',
    envelope: 'from',
    include: 'amazonses.com',
  })
  assert.deepEqual(combineTraits([plainRelay, dates]), { ...dates, envelope: 'bounce' })
})
