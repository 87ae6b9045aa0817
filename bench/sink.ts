/**
 * An SMTP server that takes every email and keeps none, as a process of its own, so that only the sender
 * is measured. It records when it answered 250 for each numbered recipient (`person7@…`), and knows no
 * recipient whose name begins with `dead`. With the argument `smtps` it speaks TLS.
 */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import tls from 'node:tls'
import { monotonicMs } from './loop.ts'

/** The delay before each final 250 from now on. Answered with the mail taken since the last order. */
export type SinkOrder = { readonly delayMs: number }
export type SinkReport = {
  /** Number of the recipient and when its email was taken, on the machine's monotonic clock. */
  readonly taken: readonly (readonly [n: number, atMs: number])[]
}

const state = { delayMs: 0, taken: [] as [number, number][] }

const replies: { readonly [verb: string]: string } = {
  EHLO: '250-sink\r\n250 PIPELINING',
  MAIL: '250 2.1.0 ok',
  RCPT: '250 2.1.5 ok',
  DATA: '354 go on',
  RSET: '250 ok',
  QUIT: '221 bye',
}

function serve(socket: Socket): void {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.write('220 sink ESMTP\r\n')
  let pending: Buffer = Buffer.alloc(0)
  let inData = false
  let recipient = -1
  let isDead = false
  const answer = (verb: string) => {
    if (isDead && verb === 'RCPT') return '550 5.1.1 no such mailbox'
    return isDead && verb === 'DATA' ? '554 5.5.1 no valid recipient' : (replies[verb] ?? '500 5.5.2 what?')
  }
  const take = () => {
    state.taken.push([recipient, monotonicMs()])
    socket.write('250 2.0.0 taken\r\n')
  }
  socket.on('data', (chunk: Buffer) => {
    socket.cork()
    process.nextTick(() => socket.uncork())
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    for (;;) {
      const end = pending.indexOf(inData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const line = inData ? '' : pending.toString('latin1', 0, end)
      pending = pending.subarray(end + (inData ? 5 : 2))
      if (inData) {
        inData = false
        if (state.delayMs === 0) take()
        else setTimeout(take, state.delayMs)
        continue
      }
      const verb = line.slice(0, 4).toUpperCase()
      if (verb === 'RCPT') {
        recipient = Number(/<person(\d+)@/.exec(line)?.[1] ?? -1)
        isDead = line.includes('<dead')
      }
      inData = verb === 'DATA' && !isDead
      socket.write(`${answer(verb)}\r\n`)
    }
  })
}

const read = (name: string) => readFileSync(new URL(`../test/support/tls/${name}`, import.meta.url))
const server =
  process.argv[2] === 'smtps'
    ? tls.createServer({ cert: read('localhost.cert.pem'), key: read('localhost.key.pem') }, serve)
    : createServer(serve)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

process.on('message', ({ delayMs }: SinkOrder) => {
  const report: SinkReport = { taken: state.taken }
  state.taken = []
  state.delayMs = delayMs
  process.send?.(report)
})
