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
      const read: string[] = []
      for (const [index, end] of at.slice(1).entries())
        assert.equal(reader.read(bytes.subarray(at[index], end), read), null)
      assert.deepEqual(read, replies)
    }),
  )
})

test('what is no reply, and a reply without end, are refused; complete replies before them count', () => {
  const read = (text: string) => {
    const replies: string[] = []
    return { fault: new ReplyReader().read(Buffer.from(text), replies), replies }
  }
  assert.match(read('hello\r\n').fault ?? '', /no SMTP reply/)
  assert.match(read('x'.repeat(70_000)).fault ?? '', /without end/)
  assert.match(read('250-x\r\n'.repeat(20_000)).fault ?? '', /without end/)
  assert.deepEqual(read('\r\n250 ok\r\n\r\n'), { fault: null, replies: ['250 ok'] })
  assert.deepEqual(read('250-queued\r\nas 123\r\n250 ok\r\n').replies, ['250-queued\nas 123\n250 ok'])
  assert.deepEqual(read('250 ok\r\nhello\r\n').replies, ['250 ok'])
})
