/**
 * The limits of the public listener, tested on `postern serve` in its own process: requests that are
 * too big, too slow or too many use bounded memory, and valid requests are still answered.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type RunningPostern, startServe } from '../support/cli.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

/** A bound, not a target: V8 collects late if memory is free. */
const residentMaxMiB = 512
/** Requests unanswered at a time on one connection. */
const batchSize = 16

const residentMiB = (server: RunningPostern): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1024

async function serve(t: TestContext): Promise<RunningPostern> {
  const relay = await startSmtpServer(t)
  return startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`, POSTERN_LOG_LEVEL: 'error' })
}

let serial = 0
const sendValid = (server: RunningPostern) =>
  send(`${server.api}/v1/email`, JSON.stringify(validBody({ to: `v${serial++}@example.com` })), {
    authorization: `Bearer ${server.key}`,
  })

function open(server: RunningPostern, onData: (text: string) => void = () => {}): Promise<Socket> {
  const { port } = new URL(server.api)
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => resolve(socket))
    socket.on('data', (chunk) => onData(chunk.toString('latin1')))
    socket.on('error', () => {})
  })
}

test('row 39: bodies of 16 KiB pass, larger ones are 400, and a flood of those leaves memory bounded', async (t) => {
  const server = await serve(t)
  const body = JSON.stringify(validBody())
  const post = (length: number) =>
    send(`${server.api}/v1/email`, body + ' '.repeat(length - body.length), {
      authorization: `Bearer ${server.key}`,
    })
  assert.equal((await post(16_384)).status, 202)
  assert.equal((await post(16_385)).status, 400)
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(2_000_000)))
    assert.ok(answers.every((answer) => answer.status === 400))
  }
  t.diagnostic(`resident after 200 bodies of 2 MB: ${Math.round(residentMiB(server))} MiB`)
  assert.ok(residentMiB(server) < residentMaxMiB)
})

test('row 40: 1,000 slow connections at once are closed in time, and valid requests are answered meanwhile', async (t) => {
  const server = await serve(t)
  const sockets = await Promise.all(Array.from({ length: 1000 }, () => open(server)))
  atEnd(t, () => sockets.forEach((socket) => void socket.destroy()))
  const closed = sockets.map((socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())))
  for (const [index, socket] of sockets.entries()) {
    const head = `POST /v1/email HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\n`
    socket.write(index % 2 === 0 ? head : `${head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`)
  }
  const drip = setInterval(() => {
    for (const [index, socket] of sockets.entries())
      if (socket.writable) socket.write(index % 2 === 0 ? 'X-Slow: 1\r\n' : ' ')
  }, 1000)
  for (let i = 0; i < 50; i++) assert.equal((await sendValid(server)).status, 202)
  const resident = residentMiB(server)
  await Promise.all(closed)
  clearInterval(drip)
  t.diagnostic(`50 valid requests answered among 1,000 slow ones; resident ${Math.round(resident)} MiB`)
  assert.ok(resident < residentMaxMiB)
  assert.equal((await sendValid(server)).status, 202)
})

test('row 45: 10,000 invalid requests a second for 20 s: bounded memory, valid requests answered', async (t) => {
  const server = await serve(t)
  const counts = new Map<string, number>()
  const free: Socket[] = []
  const connections = Array.from({ length: 256 }, async () => {
    let [unanswered, rest] = [0, '']
    const socket = await open(server, (text) => {
      rest += text
      for (const [, status = ''] of rest.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        counts.set(status, (counts.get(status) ?? 0) + 1)
        unanswered = (unanswered + 1) % batchSize
        if (unanswered === 0) free.push(socket)
      }
      rest = rest.slice(1 - 'HTTP/1.1 400'.length) // may hold the start of an answer
    })
    free.push(socket)
    return socket
  })
  const sockets = await Promise.all(connections)
  atEnd(t, () => sockets.forEach((socket) => void socket.destroy()))
  const batch = invalidRequests(server.key, batchSize)
  const { offered, summary } = await whileFlooded(t, server, () => free.shift()?.write(batch) !== undefined)
  const answered = () => [...counts.values()].reduce((sum, n) => sum + n, 0)
  await eventually(() => answered() === offered * batchSize)
  t.diagnostic(`answered ${JSON.stringify(Object.fromEntries(counts))}; ${summary}`)
  assert.deepEqual([...counts.keys()].sort(), ['400', '401', '403'])
  assert.equal((await sendValid(server)).status, 202)
})

test('row 45: clients that send on and on without reading are cut off, valid requests answered', async (t) => {
  const server = await serve(t)
  const state = { closed: 0, ended: false }
  const sockets = new Set<Socket>()
  const connectAnother = async () => {
    const socket = (await open(server)).pause()
    sockets.add(socket)
    socket.once('close', () => {
      state.closed += 1
      sockets.delete(socket)
      if (!state.ended) void connectAnother()
    })
  }
  atEnd(t, () => {
    state.ended = true
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(Array.from({ length: 32 }, connectAnother))
  const batch = invalidRequests(server.key, 10 * batchSize)
  let turn = 0
  const { summary } = await whileFlooded(t, server, () => {
    const socket = [...sockets][turn++ % 32]
    if (socket === undefined || socket.writableLength > 1_000_000) return false
    socket.write(batch)
    return true
  })
  t.diagnostic(`${state.closed} connections cut off; ${summary}`)
  assert.ok(state.closed > 32)
})

/** Calls `offer` 10,000 / `batchSize` times a second for 20 s, and sends valid requests one by one. */
async function whileFlooded(
  t: TestContext,
  server: RunningPostern,
  offer: () => boolean,
): Promise<{ offered: number; summary: string }> {
  const state = { offered: 0, tick: 0, resident: 0, valid: 0 }
  const tickMs = batchSize / 10
  const begun = performance.now()
  const flood = setInterval(() => {
    // Catches up on missed ticks, so the average rate does not depend on the timer.
    for (; state.tick < (performance.now() - begun) / tickMs; state.tick++) if (offer()) state.offered += 1
  }, 5)
  atEnd(t, () => clearInterval(flood))
  while (performance.now() - begun < 20_000) {
    assert.equal((await sendValid(server)).status, 202)
    state.valid += 1
    state.resident = Math.max(state.resident, residentMiB(server))
  }
  clearInterval(flood)
  assert.ok(state.resident < residentMaxMiB, `${state.resident} MiB`)
  const { offered, valid, resident } = state
  return {
    offered,
    summary: `${offered} pieces sent, ${valid} valid requests answered, resident at most ${Math.round(resident)} MiB`,
  }
}

/** `size` requests in one string: junk keys, junk bodies, links that are not allowed. */
function invalidRequests(key: string, size: number): string {
  const request = (authorization: string, body: string) =>
    `POST /v1/email HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const elsewhere = JSON.stringify(validBody({ url: 'https://evil.test/?token=x', expiresAt: '2099-01-01T00:00:00Z' }))
  const kinds = [request('pst_junk', '{}'), request(key, '{"to":1}'), request(key, elsewhere), request('junk', 'junk')]
  return Array.from({ length: size / kinds.length }, () => kinds.join('')).join('')
}
