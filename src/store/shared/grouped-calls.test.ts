import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupedCalls, type Settled } from './grouped-calls.ts'

/** Groups whose first one hangs until `release`. */
function newSubject(options: Partial<ConstructorParameters<typeof GroupedCalls<string>>[1]> = {}) {
  const groups: string[][] = []
  const hanging = Promise.withResolvers<void>()
  const calls = new GroupedCalls<string>(
    async (group) => {
      groups.push(group)
      if (groups.length === 1) await hanging.promise
      return group.map((call): Settled => ({ value: call }))
    },
    { groupMax: 2, inFlightMax: 1, ...options },
  )
  return { calls, groups, release: () => hanging.resolve() }
}

test('calls that come while a group is written form the next ones, in order, of so many at most', async () => {
  const { calls, groups, release } = newSubject()
  const first = calls.submit('a')
  const others = new Promise((resolve) =>
    setImmediate(() => resolve(Promise.all(['b', 'c', 'd'].map((call) => calls.submit(call))))),
  )
  setImmediate(release)
  assert.equal(await first, 'a')
  assert.deepEqual(await others, ['b', 'c', 'd'])
  assert.deepEqual(groups, [['a'], ['b', 'c'], ['d']])
})

test('a call that was given up while it waited is not made afterwards', async () => {
  const { calls, groups, release } = newSubject()
  const first = calls.submit('a')
  const late = new Promise((resolve) => setImmediate(() => resolve(calls.submit('late', 10))))
  await assert.rejects(late, { name: 'StoreUnavailable', message: 'no answer within 10 ms' })
  release()
  await first
  assert.equal(await calls.submit('next'), 'next')
  assert.deepEqual(groups, [['a'], ['next']])
})

test('a group that fails fails each of its calls, and the next group is written', async () => {
  let fails = true
  const calls = new GroupedCalls<number>(
    async (group) => {
      if (!fails) return group.map((call) => ({ value: call }))
      fails = false
      throw new TypeError('ours')
    },
    { groupMax: 9, inFlightMax: 1 },
  )
  const failed = await Promise.allSettled([calls.submit(1), calls.submit(2)])
  assert.deepEqual(
    failed.map((result) => result.status === 'rejected' && result.reason.message),
    ['ours', 'ours'],
  )
  assert.equal(await calls.submit(3), 3)
})

test('calls that come during the pause after a group share the next one, which does not wait once enough do', async () => {
  const { calls, groups, release } = newSubject({ groupMax: 9, pause: { ms: 600_000, untilWaiting: 3 } })
  release()
  assert.equal(await calls.submit('a'), 'a')
  const others = [calls.submit('b'), calls.submit('c')]
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate)
  assert.deepEqual(groups, [['a']])
  assert.deepEqual(await Promise.all([...others, calls.submit('d')]), ['b', 'c', 'd'])
  assert.deepEqual(groups, [['a'], ['b', 'c', 'd']])
})

test('a call that comes alone during the pause is made when it ends', async () => {
  const { calls, groups, release } = newSubject({ pause: { ms: 30, untilWaiting: 3 } })
  release()
  assert.equal(await calls.submit('a'), 'a')
  assert.equal(await calls.submit('b'), 'b')
  assert.deepEqual(groups, [['a'], ['b']])
})
