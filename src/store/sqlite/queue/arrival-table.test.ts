import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ArrivalTable } from './arrival-table.ts'

const slotsMax = 2048

test('it holds what a Map would hold, apart from buckets that have refilled', () => {
  // Few keys, so that they meet again, and some that fall on the same slot.
  const key = fc.oneof(fc.integer({ min: 1, max: 3000 }), fc.constantFrom(2 ** 20, 2 ** 33, 2 ** 48))
  const step = fc.tuple(key, fc.integer({ min: 1, max: 2000 }), fc.nat(20))
  fc.assert(
    fc.property(fc.array(step, { size: 'max', maxLength: 4000 }), (steps) => {
      const table = new ArrivalTable()
      const model = new Map<number, number>()
      let nowUs = 0
      for (const [bucket, lifeUs, passedUs] of steps) {
        nowUs += passedUs
        if (!table.makeRoom(1, nowUs, slotsMax)) continue
        table.set(bucket, nowUs + lifeUs)
        model.set(bucket, nowUs + lifeUs)
      }
      for (const [bucket, arrivalUs] of model) if (arrivalUs > nowUs) assert.equal(table.get(bucket), arrivalUs)
      assert.equal(table.get(5000), 0)
    }),
    { numRuns: 30 },
  )
})

test('it takes buckets up to its bound, and others again once some have refilled', () => {
  const table = new ArrivalTable()
  let size = 0
  while (table.makeRoom(1, 0, slotsMax)) table.set(++size, size <= 500 ? 1_000 : 10_000_000)
  assert.equal(size, slotsMax * 0.75)
  assert.equal(table.makeRoom(1, 500_000, slotsMax), false, 'it looks for refilled buckets once a second at most')
  assert.equal(table.makeRoom(500, 2_000_000, slotsMax), true)
  assert.equal(table.get(500), 0)
  assert.equal(table.get(501), 10_000_000)
})
