import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedRead } from './shared-read.ts'

/** A value that takes a time to read, and a clock that stands still otherwise. */
function newValue(tookMs: number, keepMs?: number) {
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
  const { value } = newValue(1)
  assert.deepEqual(await Promise.all([value.get(), value.get(), value.get()]), [1, 1, 1])
})

test('a value is kept for ten times as long as it took, and at least for its time', async () => {
  const short = newValue(10)
  assert.deepEqual([await short.after(0), await short.after(99), await short.after(1)], [1, 1, 2])
  const long = newValue(10, 1000)
  assert.deepEqual([await long.after(0), await long.after(999), await long.after(1)], [1, 1, 2])
})

test('a costly value is kept so long that reading it takes less than a hundredth of the time', async () => {
  const { after } = newValue(100)
  assert.deepEqual([await after(0), await after(19_999), await after(1)], [1, 1, 2])
})

test('a read that fails is not kept', async () => {
  let fails = true
  const value = new SharedRead(async () => {
    if (fails) throw new Error('no answer')
    return 'read'
  })
  await assert.rejects(value.get(), /no answer/)
  fails = false
  assert.equal(await value.get(), 'read')
})
