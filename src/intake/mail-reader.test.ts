import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mailReader } from './mail-reader.ts'

const headed = (type: string, body: string) => Buffer.from(`Content-Type: ${type}\r\n\r\n${body}`)
const usual = headed('text/plain', 'https://app.acme.test/reset?token=a')
/** The library compares each `<a ` with each `href=` behind it. */
const slow = headed(
  'multipart/mixed; boundary=b',
  `--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b\r\nContent-Type: text/html\r\n\r\n${'<a '.repeat(20_000)}${'href= '.repeat(20_000)}\r\n--b--\r\n`,
)

test('a message that takes too long is refused, and holds up neither this thread nor the next message', async () => {
  let ticks = 0
  const clock = setInterval(() => ticks++, 5)
  const order: string[] = []
  const read = async (app: string, bytes: Buffer) => {
    const mail = await mailReader.read(app, bytes, 'ada@example.com')
    order.push(app)
    return mail.ok ? mail.value.links.length : mail.issues[0]?.code
  }
  const codes = await Promise.all([read('a', slow), read('a', slow), read('b', usual), read('a', usual)])
  clearInterval(clock)
  assert.deepEqual(codes, ['too_slow', 'too_slow', 1, 1])
  assert.deepEqual(order, ['a', 'a', 'b', 'a'], 'apps take turns')
  assert.ok(ticks > 20)
})
