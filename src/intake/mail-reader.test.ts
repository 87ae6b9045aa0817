import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mailReader } from './mail-reader.ts'

const headed = (type: string, body: string) => Buffer.from(`Content-Type: ${type}\r\n\r\n${body}`)
const usual = headed('text/plain', 'https://app.acme.test/reset?token=a')
/** The library compares each `<a ` with each `href=` behind it. */
const slow = (times: number) =>
  headed(
    'multipart/mixed; boundary=b',
    `--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b\r\nContent-Type: text/html\r\n\r\n${'<a '.repeat(times)}${'href= '.repeat(times)}\r\n--b--\r\n`,
  )
const tooSlow = slow(20_000)

test('a message that takes too long is refused, and holds up neither this thread nor the next message', async () => {
  let ticks = 0
  const clock = setInterval(() => ticks++, 5)
  const order: string[] = []
  const read = async (app: string, bytes: Buffer) => {
    const mail = await mailReader.read(app, bytes, 'ada@example.com')
    order.push(app)
    return mail.ok ? mail.value.links.length : mail.issues[0]?.code
  }
  const codes = await Promise.all([read('a', tooSlow), read('a', tooSlow), read('b', usual), read('a', usual)])
  clearInterval(clock)
  assert.deepEqual(codes, ['too_slow', 'too_slow', 1, 1])
  assert.deepEqual(order, ['a', 'a', 'b', 'a'], 'apps take turns')
  assert.ok(ticks > 20)
})

/** Holds this thread. */
const hold = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('an answer that arrives while this thread is held is in time, and never that of another message', async () => {
  await mailReader.read('a', usual, 'ada@example.com') // the thread has started
  const first = mailReader.read('a', slow(4000), 'ada@example.com')
  const second = mailReader.read('b', usual, 'bob@example.com')
  hold(100) // the first message is begun
  await nextTurn()
  hold(2100) // it is read, and its time is over
  const answers = await Promise.all([first, second])
  assert.deepEqual(
    answers.map((mail) => mail.ok && [mail.value.to, mail.value.links.length]),
    [
      ['ada@example.com', 0],
      ['bob@example.com', 1],
    ],
  )
})
