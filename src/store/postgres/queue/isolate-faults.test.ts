import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallAtFault } from '../engine/errors.ts'
import { isolateFaults } from './isolate-faults.ts'

/** Runs calls of which `bad` makes its group fail. */
async function isolate(calls: readonly string[], error: Error = new CallAtFault('bad')) {
  const runs: (readonly string[])[] = []
  const settled = isolateFaults(calls, async (some) => {
    runs.push(some)
    if (some.includes('bad')) throw error
    return some.map((value) => ({ value }))
  })
  const results = await settled.catch((thrown: Error) => thrown.message)
  return { runs, results }
}

test('a call at fault fails alone; the others of its group are run one by one', async () => {
  const { results, runs } = await isolate(['a', 'bad', 'b'])
  assert.deepEqual(results, [{ value: 'a' }, { error: new CallAtFault('bad') }, { value: 'b' }])
  assert.deepEqual(runs, [['a', 'bad', 'b'], ['a'], ['bad'], ['b']])
})

test('a call that is alone in its group is not run again, nor is one after any other failure', async () => {
  assert.deepEqual(await isolate(['bad']), { results: 'bad', runs: [['bad']] })
  const group = ['a', 'bad']
  assert.deepEqual(await isolate(group, new Error('away')), { results: 'away', runs: [group] })
})
