import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Signal } from './signal.ts'

test('a notification ends one wait: the one under way, or else the next', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const signal = new Signal()
  let ended = 0
  const wait = () => void signal.wait(250).then(() => ended++)
  const settle = async () => {
    for (let n = 0; n < 3; n++) await Promise.resolve()
    return ended
  }
  signal.notify()
  wait()
  assert.equal(await settle(), 1)
  wait()
  assert.equal(await settle(), 1, 'it was used up')
  signal.notify()
  assert.equal(await settle(), 2)
  wait()
  t.mock.timers.tick(249)
  assert.equal(await settle(), 2)
  t.mock.timers.tick(1)
  assert.equal(await settle(), 3)
})
