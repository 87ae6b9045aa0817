import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PosternEvent } from '../../observe/events.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { OutcomeWriter } from './outcome-writer.ts'

test('an outage of the store is one event, the next outage is another', () => {
  const seen: PosternEvent['kind'][] = []
  let failures = 0
  const writer = new OutcomeWriter({
    store: {
      recordOutcome: () => assert.fail('nothing is written'),
      strikeRefused: () => assert.fail('nobody is struck'),
    },
    onFailed: () => assert.fail('no email failed'),
    emit: ({ kind }) => void seen.push(kind),
    onFailure: () => void failures++,
  })
  const down = new StoreUnavailable('down')
  for (let n = 0; n < 3; n++) writer.noteFailure(down)
  assert.deepEqual([seen, failures], [['store_write_failed'], 3])
  writer.noteSuccess()
  writer.noteFailure(down)
  assert.deepEqual(seen, ['store_write_failed', 'store_write_failed'])
  writer.noteFailure(new TypeError('a bug'))
  assert.equal(seen.at(-1), 'bug', 'any other error is a bug, each time')
})
