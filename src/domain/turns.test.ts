import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Turns } from './turns.ts'

test('after a large piece of work, others come before the next piece', async () => {
  const turns = new Turns()
  const order: string[] = []
  await turns.next(128 * 1024)
  await Promise.all([turns.next(1).then(() => order.push('small')), sleep(1).then(() => order.push('others'))])
  assert.deepEqual(order, ['others', 'small'])
})
