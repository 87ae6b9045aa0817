import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readBody } from './read-body.ts'

test('a body is read up to its limit; a client that disconnects before its end ends the reading', {
  timeout: 10_000,
}, async (t) => {
  const read = async (sent: string, disconnects = false) => {
    const body = Promise.withResolvers<Uint8Array | null>()
    const server = createServer((request) => {
      readBody(request, 5).then(body.resolve, body.reject)
      if (disconnects) request.once('data', () => socket.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${sent.length + (disconnects ? 1 : 0)}\r\n\r\n${sent}`)
    const bytes = await body.promise
    return bytes === null ? null : String(Buffer.from(bytes))
  }
  assert.deepEqual([await read('12345'), await read('123456')], ['12345', null])
  await assert.rejects(read('1234', true), { code: 'ECONNRESET' })
})

test('a body in single bytes takes no more memory than its bytes', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const size = 1024 * 1024
  const stream = new PassThrough()
  const read = readBody(stream, size)
  const measure = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = measure()
  for (let n = 0; n < size; n++) stream.emit('data', Buffer.from([n % 251]))
  const grown = measure() - before
  assert.ok(grown < 5e6, `${grown} bytes`)
  stream.emit('end')
  const bytes = (await read) ?? new Uint8Array()
  assert.equal(bytes.length, size)
  assert.ok(bytes.every((byte, n) => byte === n % 251))
})
