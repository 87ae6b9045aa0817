import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepCountsMs, Remembered, SharedRead } from './remembered.ts'

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

test('callers share the read that follows when a value has become old, and of each name', async () => {
  const clock = { ms: 0 }
  let reads = 0
  const remembered = new Remembered<number>({ keepMs: () => 1000, max: 10, now: () => clock.ms })
  const ask = (name: string) => remembered.get(name, async () => ++reads)
  const askAll = () => Promise.all(Array.from({ length: 200 }, () => ask('one')))
  assert.deepEqual(new Set(await askAll()), new Set([1]))
  clock.ms = 1001
  assert.equal(remembered.peek('one'), undefined)
  assert.equal(remembered.last('one'), 1)
  assert.deepEqual(new Set(await askAll()), new Set([2]))
  assert.equal(await ask('other'), 3)
  assert.equal(await remembered.get('one', async () => ++reads, 0), 4, 'younger than it is')
  await assert.rejects(
    remembered.get('new', async () => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(await ask('new'), 5, 'a read that failed is not remembered')
})

test('values kept apart push out no others', async () => {
  const remembered = new Remembered<string>({ keepMs: () => 1000, max: 2, isApart: (text) => text === '' })
  await remembered.get('known', async () => 'known')
  for (let n = 0; n < 20; n++) await remembered.get(`made up ${n}`, async () => '')
  assert.equal(remembered.peek('known'), 'known')
})
