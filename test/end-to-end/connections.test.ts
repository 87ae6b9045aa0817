/** Connections of strangers keep nobody out. Each address of loopback is a stranger here. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { close, listen, newListener } from '../../src/web/http/listener.ts'
import { newSecrets, readKeys, writeKeys } from '../support/provider-calls.ts'
import { startTestService } from '../support/service.ts'
import { handReport } from '../support/smtp-dialogue.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const address = { host: '127.0.0.1', port: 0 }
const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const service = await startTestService(
  { after },
  {
    authHooks: true,
    linksBaseUrl: 'https://links.acme.test',
    reports: { address, keys: readKeys(writeKeys(newSecrets())) },
    ...{ bounce: { address, tls: null }, bounceAddress },
    isProxy: () => false,
  },
)

const portOf = (url = '') => Number(new URL(url).port)

/** Opens a connection, and sends the text. */
async function open(scope: Scope, port: number, { localAddress, text = '' }: { localAddress: string; text?: string }) {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  atEnd(scope, () => void socket.destroy())
  socket.on('error', () => {}).resume()
  await once(socket, 'connect')
  if (text !== '') await new Promise<void>((resolve) => socket.write(text, () => resolve()))
  return socket
}

async function openMany(
  scope: Scope,
  port: number,
  count: number,
  toClient: (n: number) => { localAddress: string; text?: string },
) {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) sockets.push(await open(scope, port, toClient(n)))
  return sockets
}

/** The status of a GET by a new connection. */
const call = (port: number, localAddress: string) =>
  new Promise<number>((resolve, reject) => {
    const asked = request({ port, host: '127.0.0.1', localAddress, agent: false }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
    })
    asked.once('error', reject).end()
  })

/** An eighth of the connections of each listener. */
const shares = { ops: 1024, api: 512, links: 256, authHooks: 113, console: 204, reports: 15 } as const

for (const [name, share] of Object.entries(shares))
  test(`${name}: one client has ${share} idle connections, and 20 calls of another are answered`, async (t) => {
    const port = portOf(service.urls[name as keyof typeof shares])
    const own = await openMany(t, port, share + 105, () => ({ localAddress: '127.0.0.2' }))
    await eventually(() => own.slice(0, 105).every(({ closed }) => closed))
    assert.equal(own[105]?.closed, false)
    for (let n = 0; n < 20; n++) assert.ok((await call(port, '127.3.0.5')) >= 200)
    assert.ok((await call(port, '127.0.0.2')) >= 200, 'and so is one of its own')
  })

test('bounce: 120 idle connections of one client, and 20 reports of another are taken', async (t) => {
  const port = portOf(service.urls.bounce)
  await openMany(t, port, 120, () => ({ localAddress: '127.0.0.2' }))
  const from = { to: bounceAddress, report: 'Hello', localAddress: '127.3.0.5' }
  for (let n = 0; n < 20; n++) assert.match(await handReport(port, from), /^250/)
})

test('idle connections of many networks, as many as there may be, keep nobody out', async (t) => {
  const reports = portOf(service.urls.reports)
  await openMany(t, reports, 130, (n) => ({ localAddress: `127.${10 + n}.0.1` }))
  for (let n = 0; n < 20; n++) assert.ok((await call(reports, '127.3.0.5')) >= 200)
  const bounce = portOf(service.urls.bounce)
  await openMany(t, bounce, 60, (n) => ({ localAddress: `127.${10 + n}.0.1` }))
  assert.match(await handReport(bounce, { to: bounceAddress, report: 'Hello' }), /^250/)
})

test('a header that does not end keeps no place; a body does, in the client’s own share', async (t) => {
  const port = portOf(service.urls.reports)
  const header = 'POST /reports/generic HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n'
  await openMany(t, port, 20, () => ({ localAddress: '127.0.0.3', text: header }))
  assert.ok((await call(port, '127.0.0.3')) >= 200)
  const held: Socket[] = []
  const isRefused = () =>
    call(port, '127.0.0.4').then(
      () => false,
      () => true,
    )
  await eventually(async () => {
    held.push(await open(t, port, { localAddress: '127.0.0.4', text: `${header}\r\n{` }))
    await call(port, '127.0.0.5') // meanwhile the server reads the beginning of the body
    return held.length >= 15 && (await isRefused())
  })
  assert.equal(held.filter(({ closed }) => !closed).length, 15)
  assert.ok((await call(port, '127.0.0.5')) >= 200)
  for (const socket of held) socket.destroy()
  await eventually(async () => !(await isRefused()))
})

test('requests that came together are all answered before their connection is idle', async (t) => {
  // Room for one connection of a client.
  const listener = newListener({ emit: () => {}, isProxy: () => false, bodyBytesMax: 14 * 1024 * 1024 })
  const answers: (() => void)[] = []
  listener.get('/', (_request, reply) => {
    answers.push(() => void reply.send('done'))
    return reply
  })
  const port = portOf(await listen(listener, address))
  t.after(() => close(listener, 0))
  const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const first = await open(t, port, { localAddress: '127.0.0.6', text: `${get}${get}` })
  for (let n = 0; n < 2; n++) {
    await eventually(() => answers.length === n + 1)
    await assert.rejects(call(port, '127.0.0.6'), { code: 'ECONNRESET' })
    answers[n]?.()
  }
  await once(first, 'data')
  await eventually(async () => {
    await open(t, port, { localAddress: '127.0.0.6' })
    return first.closed
  })
})

test('a connection whose request is answered while the listener closes is not kept', async () => {
  const listener = newListener({ emit: () => {} })
  const answer = Promise.withResolvers<void>()
  listener.get('/', async () => {
    await answer.promise
    return 'done'
  })
  const port = portOf(await listen(listener, address))
  const served = once(listener.server, 'request')
  const response = fetch(`http://127.0.0.1:${port}/`)
  await served
  const closed = close(listener, 60_000)
  await eventually(() => !listener.server.listening)
  answer.resolve()
  assert.equal((await response).headers.get('connection'), 'close')
  await closed
})

test('for `localhost`, there is no second server beside the one whose connections are limited', async (t) => {
  const listener = newListener({ emit: () => {} })
  t.after(() => close(listener, 0))
  assert.match(await listen(listener, { host: 'localhost', port: 0 }), /^http:\/\/127\.0\.0\.1:/)
  assert.equal(listener.addresses().length, 1)
})

test('a client that does not read its answer is closed', async (t) => {
  const listener = newListener({ emit: () => {} })
  assert.equal(listener.server.timeout, 120_000)
  listener.server.timeout = 200
  listener.get('/', (_request, reply) => reply.send(Buffer.alloc(64 * 1024 * 1024)))
  const port = portOf(await listen(listener, address))
  t.after(() => close(listener, 0))
  const served = once(listener.server, 'connection')
  const socket = connect({ port, host: '127.0.0.1' })
  atEnd(t, () => void socket.destroy())
  socket.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [connection] = (await served) as [Socket]
  await once(connection, 'close')
})
