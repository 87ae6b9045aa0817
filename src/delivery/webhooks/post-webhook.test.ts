import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { postWebhook } from './post-webhook.ts'

const posting = { headers: { 'x-test': 'yes' }, body: Buffer.from('{}') }
const never = new AbortController().signal
const post = (url: string, more: Partial<Parameters<typeof postWebhook>[1]> = {}) =>
  postWebhook({ ...posting, url: new URL(url) }, { allowsPrivate: true, dnsServers: null, stopped: never, ...more })

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

/** Answers each question for IPv4 with these addresses, and any other with none. */
async function startNameServer(t: { after: (end: () => void) => void }, addresses: readonly string[]) {
  const socket = createSocket('udp4')
  socket.on('message', (query, { address, port }) => {
    const isFour = query.readUInt16BE(query.indexOf(0, 12) + 1) === 1
    const records = isFour ? addresses : []
    const head = Buffer.from(query.subarray(0, query.indexOf(0, 12) + 5))
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt16BE(0, 10)
    const answers = records.map((text) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...text.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([head, ...answers]), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  t.after(() => socket.close())
  return `127.0.0.1:${socket.address().port}`
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
    assert.deepEqual(await post(url), { result: String(status), isTaken, response: isTaken ? null : 'endless' })
  }
})

test('of a refusal the beginning is read, however long it is or takes', { timeout: 20_000 }, async (t) => {
  const long = await listen(t, (response) => response.writeHead(400).end('x'.repeat(1e6)))
  assert.deepEqual(await post(long), { result: '400', isTaken: false, response: 'x'.repeat(2000) })
  const slow = await listen(t, (response) => {
    response.writeHead(400).write('a')
    const drip = setInterval(() => response.write('a'), 50)
    response.once('close', () => clearInterval(drip))
  })
  assert.match((await post(slow, { timeoutMs: 60_000 })).response ?? '', /^a+$/)
  const cut = await listen(t, (response) => {
    response.writeHead(503, { 'content-length': 100 }).write('half')
    response.destroy()
  })
  const answer = await post(cut)
  assert.equal(answer.isTaken, false)
})

test('a receiver that does not answer, or answers without an end, is given up in time', {
  timeout: 20_000,
}, async (t) => {
  const silent = await listen(t, () => {})
  assert.deepEqual(await post(silent, { timeoutMs: 50 }), {
    result: 'no answer within 0.05 s',
    isTaken: false,
    response: null,
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
  assert.deepEqual(huge, { result: 'no answer (HPE_HEADER_OVERFLOW)', isTaken: false, response: null })
  const stopped = AbortSignal.abort()
  assert.equal((await post(silent, { stopped })).isTaken, false)
})

test('a receiver that switches protocols, or says for ever that it goes on, gets no more than its turn', {
  timeout: 20_000,
}, async (t) => {
  const say = async (text: string, isRepeated = false) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write(text)
        const more = setInterval(() => isRepeated && socket.write(text), 1)
        socket.once('close', () => clearInterval(more))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    return post(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  }
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  assert.deepEqual(await say(upgrade), { result: 'no answer', isTaken: false, response: null })
  const flood = await say('HTTP/1.1 103 Early Hints\r\n\r\n', true)
  assert.equal(flood.isTaken, false)
  assert.doesNotMatch(flood.result, /within/)
  const polite = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'
  assert.deepEqual(await say(polite), { result: '204', isTaken: true, response: null })
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
  const hosts = ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '[::1]', '10.0.0.1']
  const privateNetwork = { result: 'its address is not on the public Internet', isTaken: false, response: null }
  for (const host of hosts) assert.deepEqual(await refuse(`https://${host}:${port}/`), privateNetwork, host)
  assert.match((await refuse(`https://localhost:${port}/`)).result, /^no answer \(/)
  for (const [addresses, result] of [
    [['127.0.0.1'], privateNetwork.result],
    [['10.1.2.3', '192.168.0.1'], privateNetwork.result],
    [[], /^no answer \(/],
  ] as const) {
    const dnsServers = [await startNameServer(t, addresses)]
    const answer = await post(`https://app.acme.test:${port}/`, { allowsPrivate: false, dnsServers })
    if (typeof result === 'string') assert.equal(answer.result, result)
    else assert.match(answer.result, result)
  }
  assert.equal(calls, 0)
  assert.equal((await post(url)).isTaken, true, 'it is there')
})
