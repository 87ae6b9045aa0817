import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { postWebhook } from './post-webhook.ts'

const posting = { headers: { 'x-test': 'yes' }, body: Buffer.from('{}') }
const never = new AbortController().signal
const post = (url: string, more: Partial<Parameters<typeof postWebhook>[1]> = {}) =>
  postWebhook({ ...posting, url: new URL(url) }, { allowsPrivate: true, stopped: never, ...more })

async function listen(
  t: { after: (end: () => void) => void },
  answer: (response: ServerResponse) => void,
): Promise<string> {
  const server = createServer((_request, response) => answer(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

test('a status from 200 to 299 takes the message; the body is not waited for', async (t) => {
  for (const [status, isTaken] of [
    [200, true],
    [299, true],
    [302, false],
    [410, false],
    [503, false],
  ] as const) {
    const url = await listen(t, (response) => response.writeHead(status, { location: '/x' }).write('endless'))
    assert.deepEqual(await post(url), { result: String(status), isTaken })
  }
})

test('a receiver that does not answer, or answers without an end, is given up in time', {
  timeout: 20_000,
}, async (t) => {
  const silent = await listen(t, () => {})
  assert.deepEqual(await post(silent, { timeoutMs: 50 }), {
    result: 'no answer within 0.05 s',
    isTaken: false,
  })
  const endless = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 200 OK\r\n')
    const drip = setInterval(() => socket.write(`x-${'y'.repeat(1000)}: z\r\n`), 1)
    socket.once('close', () => clearInterval(drip))
  })
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve))
  t.after(() => endless.close())
  const huge = await post(`http://127.0.0.1:${(endless.address() as AddressInfo).port}/`)
  assert.deepEqual(huge, { result: 'no answer (HPE_HEADER_OVERFLOW)', isTaken: false })
  const stopped = AbortSignal.abort()
  assert.equal((await post(silent, { stopped })).isTaken, false)
})

test('unless it is allowed, no connection to the private network is made, by name or by address', async (t) => {
  let calls = 0
  const url = await listen(t, (response) => {
    calls++
    response.writeHead(200).end()
  })
  const { port } = new URL(url)
  const refuse = (text: string) => post(text, { allowsPrivate: false })
  assert.equal((await refuse(url)).result, 'needs https')
  const hosts = ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '[::1]', '10.0.0.1']
  for (const host of hosts)
    assert.deepEqual(
      await refuse(`https://${host}:${port}/`),
      { result: 'its address is not on the public Internet', isTaken: false },
      host,
    )
  assert.equal(calls, 0)
  assert.equal((await post(url)).isTaken, true, 'it is there')
})
