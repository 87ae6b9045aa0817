import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readCorpus } from '../../../test/support/corpus.ts'
import { parseTimestamp } from './timestamp.ts'

test('every timestamp of the valid corpus is read as the moment stated', () => {
  for (const [raw, moment = ''] of readCorpus('timestamp.valid')) {
    const timestamp = parseTimestamp(raw, 'expiresAt')
    assert.ok(timestamp.ok, raw)
    assert.equal(new Date(timestamp.value).toISOString(), moment, raw)
  }
})

test('every timestamp of the invalid corpus is refused for its reason', () => {
  for (const [code, raw = ''] of readCorpus('timestamp.invalid')) {
    const timestamp = parseTimestamp(raw, 'expiresAt')
    assert.ok(!timestamp.ok, raw)
    assert.deepEqual(
      timestamp.issues.map((issue) => issue.code),
      [code],
      raw,
    )
  }
})

test('the corpora hold at least 40 timestamps', () => {
  assert.ok(readCorpus('timestamp.valid').length + readCorpus('timestamp.invalid').length >= 40)
})

test('what Date.toISOString() writes is read back to the millisecond', () => {
  const dates = fc.date({
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(dates, (date) => {
      const timestamp = parseTimestamp(date.toISOString(), 'expiresAt')
      assert.ok(timestamp.ok && timestamp.value === date.getTime())
    }),
    { numRuns: 5000 },
  )
})

test('no input throws, and what is accepted Date agrees with where it can read it', () => {
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^\d{4}-?\d{2}-?\d{2}T\d{2}:?\d{2}(:?\d{2}([.,]\d{1,12})?)?(Z|[+-]\d{2}(:?\d{2})?)?$/),
  )
  fc.assert(
    fc.property(text, (raw) => {
      const timestamp = parseTimestamp(raw, 'expiresAt')
      if (!timestamp.ok) return
      const date = Date.parse(raw)
      if (!Number.isNaN(date)) assert.equal(timestamp.value, date, raw)
    }),
    { numRuns: 10_000 },
  )
})

test('offsets go to 23:59 on either side, and move the time the other way', () => {
  const at = (text: string) => {
    const parsed = parseTimestamp(text, 'expiresAt')
    return parsed.ok ? parsed.value : parsed.issues[0]?.code
  }
  const noon = Date.UTC(2026, 10, 20, 12)
  assert.equal(at('2026-11-20T12:00:00+23:59'), noon - (23 * 60 + 59) * 60_000)
  assert.equal(at('2026-11-20T12:00:00-23:59'), noon + (23 * 60 + 59) * 60_000)
  assert.equal(at('2026-11-20T12:00:00+24:00'), 'no_such_moment')
  assert.equal(at('2026-11-20T12:00:00+23:60'), 'no_such_moment')
  assert.equal(at('2026-11-20T12:00:00Z'), noon)
})
