import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepCountsMs, SharedRead } from './shared-read.ts'

/** A value that takes a time to read, and a clock that stands still otherwise. */
function newValue(tookMs: number, keepMs: (tookMs: number) => number) {
  const clock = { ms: 0, reads: 0 }
  const read = async () => {
    clock.ms += tookMs
    return ++clock.reads
  }
  const value = new SharedRead(read, keepMs, () => clock.ms)
  const after = (ms: number) => {
    clock.ms += ms
    return value.get()
  }
  return { value, after }
}

test('callers at the same time share one read', async () => {
  const { value } = newValue(1, () => 0)
  assert.deepEqual(await Promise.all([value.get(), value.get(), value.get()]), [1, 1, 1])
})

test('a value is kept for its time, however long it took to read', async () => {
  const { after } = newValue(30_000, () => 10_000)
  assert.deepEqual([await after(0), await after(9999), await after(1)], [1, 1, 2])
})

test('the time may follow from how long the value took to read', async () => {
  const { after } = newValue(10, (tookMs) => 3 * tookMs)
  assert.deepEqual([await after(0), await after(29), await after(1)], [1, 1, 2])
})

test('a read that fails is not kept', async () => {
  let fails = true
  const value = new SharedRead(
    async () => {
      if (fails) throw new Error('no answer')
      return 'read'
    },
    () => 1000,
  )
  await assert.rejects(value.get(), /no answer/)
  fails = false
  assert.equal(await value.get(), 'read')
})

test('a count is kept for ten times as long as it took, a costly one for 200 times, but not longer than a minute', () => {
  assert.deepEqual([1, 20, 21, 299, 5000].map(keepCountsMs), [10, 200, 4200, 59_800, 60_000])
})
