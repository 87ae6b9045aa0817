import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventStream, type PosternEvent } from './events.ts'

test('a listener that throws stops neither the emitter nor the others, and they learn of it', () => {
  const events = new EventStream()
  const seen: PosternEvent['kind'][] = []
  events.subscribe(() => {
    throw new Error('no')
  })
  events.subscribe(({ kind }) => seen.push(kind))
  events.emit({ kind: 'link_viewed', result: 'opened' })
  assert.deepEqual(seen, ['bug', 'link_viewed'])
})
