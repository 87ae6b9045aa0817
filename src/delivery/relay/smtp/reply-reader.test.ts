import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ReplyReader } from './reply-reader.ts'

test('replies are the same, however their bytes are cut', () => {
  const replies = ['220 hello', '250-one\n250-two\n250 three', '354 go on', '550 5.1.1 Größe', '250']
  const bytes = Buffer.from(`${replies.join('\n').replaceAll('\n', '\r\n')}\r\n`)
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const reader = new ReplyReader()
      const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
      const read = at.slice(1).flatMap((end, index) => reader.read(bytes.subarray(at[index], end)))
      assert.deepEqual(read, replies)
    }),
  )
})

test('what is no reply, and a reply without end, are refused', () => {
  const read = (text: string) => new ReplyReader().read(Buffer.from(text))
  assert.throws(() => read('hello\r\n'), /no SMTP reply/)
  assert.deepEqual(read('\r\n250 ok\r\n\r\n'), ['250 ok'])
  assert.throws(() => read('x'.repeat(70_000)), /without end/)
  assert.throws(() => read('250-x\r\n'.repeat(20_000)), /without end/)
})
