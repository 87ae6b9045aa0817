/**
 * Real SMTP servers on sockets: one that accepts everything (`smtp-server`), and one that follows a
 * script, for faults that a correct server never shows.
 */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { Message } from '../../src/delivery/relay/relay.ts'
import type { Reference } from '../../src/domain/delivery/reference.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { atEnd, type Scope } from './temporary.ts'
import { eventually } from './wait.ts'

export type Received = { from: string; to: string[]; raw: string; secure: boolean; user: string | undefined }

/** Takes every message and keeps it. */
export async function startSmtpServer(scope: Scope, options: SMTPServerOptions = {}, host = '127.0.0.1') {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    closeTimeout: 50,
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((recipient) => recipient.address),
          raw: Buffer.concat(chunks).toString('utf8'),
          secure: session.secure,
          user: session.user,
        })
        callback(null, 'queued')
      })
    },
    ...options,
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  atEnd(scope, () => new Promise((resolve) => server.close(() => resolve(undefined))))
  const { port } = server.server.address() as AddressInfo
  const first = () => eventually(() => received[0])
  return { port, received, first }
}

/** One step of a scripted server: a reply to send, or a function to call, which may return one. */
type Deed = string | ((socket: Socket) => unknown)
export type Script = {
  greeting?: Deed
  ehlo?: Deed
  starttls?: Deed
  auth?: Deed
  mail?: Deed
  rcpt?: Deed
  data?: Deed
  /** After the final dot. */
  dot?: Deed
}

const defaults: Required<Script> = {
  greeting: '220 scripted ESMTP',
  ehlo: '250 scripted',
  starttls: '454 4.7.0 no TLS here',
  auth: '235 2.7.0 ok',
  mail: '250 2.1.0 ok',
  rcpt: '250 2.1.5 ok',
  data: '354 go on',
  dot: '250 2.0.0 taken',
}

/** Closes the connection without a reply. */
export const drop = (socket: Socket): void => void socket.destroy()
/** Never answers. */
export const silence = (): void => {}

/**
 * A server that follows `script`, which may be a function of the connection's number (from 0).
 * `transcript` holds the command lines from clients, `messages` the bodies.
 */
export async function startScriptedServer(
  scope: Scope,
  script: Script | ((connection: number) => Script),
  listenPort = 0,
) {
  const transcript: string[] = []
  const messages: string[] = []
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    const number = sockets.size
    sockets.add(socket)
    socket.on('error', () => {})
    const steps = { ...defaults, ...(typeof script === 'function' ? script(number) : script) }
    serve(socket, steps, { transcript, messages })
  })
  server.listen(listenPort, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  atEnd(scope, close)
  return {
    port: (server.address() as AddressInfo).port,
    close,
    transcript,
    messages,
    connections: () => sockets.size,
  }
}

type Record = { transcript: string[]; messages: string[] }

function serve(socket: Socket, steps: Required<Script>, { transcript, messages }: Record): void {
  /** Whether it may have been the reply that begins a message. */
  const act = (deed: Deed): boolean => {
    const reply = typeof deed === 'string' ? deed : deed(socket)
    if (typeof reply !== 'string') return true
    socket.write(`${reply}\r\n`)
    return reply.startsWith('354')
  }
  let pending = ''
  let inData = false
  act(steps.greeting)
  socket.on('data', (chunk) => {
    pending += chunk.toString('utf8')
    for (;;) {
      const end = pending.indexOf(inData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const piece = pending.slice(0, end)
      pending = pending.slice(end + (inData ? 5 : 2))
      if (inData) {
        inData = false
        messages.push(piece)
        act(steps.dot)
        continue
      }
      transcript.push(piece)
      const verb = piece.split(' ')[0]?.toUpperCase()
      const deeds: { [verb: string]: Deed } = {
        EHLO: steps.ehlo,
        HELO: steps.ehlo,
        STARTTLS: steps.starttls,
        AUTH: steps.auth,
        MAIL: steps.mail,
        RCPT: steps.rcpt,
        DATA: steps.data,
        RSET: '250 ok',
        QUIT: '221 bye',
      }
      const mayBegin = act(deeds[verb ?? ''] ?? '500 5.5.2 what?')
      if (verb === 'DATA') inData = mayBegin
    }
  })
}

/** A message for a relay, without an email behind it. */
export const testMessage = (change: Partial<Message> = {}): Message => ({
  from: 'auth@acme.test' as EmailAddress,
  bounceTo: null,
  to: 'ada@example.com' as EmailAddress,
  id: 'em_x' as EmailId,
  attempt: 1,
  reference: 'em_01m85rt6yr0000fykq7my1841e.0123456789' as Reference,
  bytes: Buffer.from('Subject: x\r\n\r\nx\r\n'),
  content: {
    to: 'ada@example.com' as EmailAddress,
    url: 'https://acme.test/?token=x',
    messageIdDomain: 'acme.test',
  },
  describe: () => {
    throw new Error('only the dev inbox needs this')
  },
  ...change,
})
