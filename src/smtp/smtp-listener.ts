/**
 * The hardened SMTP server (RFC 5321) that the bounce listener and the submission listener share: bounded
 * connections of each network, sessions, steps, commands and messages. One recipient a message.
 */

import { readFileSync } from 'node:fs'
import type { AddressInfo, Server, Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'
import { isPrivateNetwork, toClientAddress } from '../domain/client-network.ts'
import { ConnectionLimits } from '../domain/connection-limits.ts'
import { formatHostPort } from '../domain/host-port.ts'
import type { Turns } from '../domain/turns.ts'

export type Session = SMTPServerSession

/** The settings of a listener. */
export type SmtpAddress = {
  readonly address: { readonly host: string; readonly port: number }
  /** Certificate and private key in PEM; null for none. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
}

export type SmtpListenerOptions = SmtpAddress & {
  readonly times?: Times
  /** Whether an address may be that of a proxy; `isPrivateNetwork` unless given. */
  readonly isProxy?: (address: string) => boolean
}

type Times = {
  /** How long a client may take for a command. */
  readonly stepMs: number
  readonly sessionMs: number
}

export type SmtpHandlers = {
  readonly banner: string
  readonly connectionsMax: number
  /** Bytes of a message. */
  readonly messageMax: number
  readonly times: Times
  /** Log-in and TLS, which differ. */
  readonly server: SMTPServerOptions
  /** Null for a recipient that may follow. Asks no store. */
  readonly judgeRecipient: (address: string, session: Session) => Error | null
  /** Takes a message, and resolves to the text behind its 250. Rejects with a reply of `smtpReply`. */
  readonly take: (message: Incoming, session: Session) => Promise<string | undefined>
}

/** A message while it comes in. */
export type Incoming = {
  readonly stream: SMTPServerDataStream
  /** Ends its connection without an answer. */
  readonly cutOff: () => void
}

/** Bytes of a command line. */
const commandMax = 2048
/** When the service stops, sessions in progress get this long to end. */
const closeMs = 1000
const turnBytes = 64 * 1024
/** Refused recipients of one session; more is somebody who guesses. */
const refusedMax = 20

/** A reply to a client that is refused, as the SMTP library takes it. */
export const smtpReply = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode })

const oneRecipient = smtpReply(452, '4.5.3 One recipient a message')
const tooManyRefused = smtpReply(421, '4.7.0 Too many refused recipients')

export class SmtpListener {
  readonly #address: SmtpListenerOptions['address']
  readonly #handlers: SmtpHandlers
  readonly #server: SMTPServer
  readonly #refused = new WeakMap<Session, number>()
  readonly #limits: ConnectionLimits<Socket>
  /** The socket of each session, by the client's address and port. */
  readonly #sockets = new Map<string, WeakRef<Socket>>()

  constructor({ address, isProxy = isPrivateNetwork, times, tls }: SmtpListenerOptions, handlers: SmtpHandlers) {
    this.#address = address
    this.#handlers = handlers
    const { stepMs, sessionMs } = times ?? handlers.times
    this.#limits = new ConnectionLimits(handlers.connectionsMax, isProxy)
    const { disabledCommands = [], ...more } = handlers.server
    this.#server = new SMTPServer({
      name: 'postern',
      banner: handlers.banner,
      size: handlers.messageMax,
      maxCommandLength: commandMax,
      socketTimeout: stepMs,
      closeTimeout: closeMs,
      disableReverseLookup: true,
      // With it, Exim sends QUIT right behind a message and closes its side: it would get no answer, and
      // send the message again.
      hidePIPELINING: true,
      disabledCommands: [...disabledCommands, ...(tls === null ? ['STARTTLS'] : [])],
      logger: false,
      ...(tls !== null && { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }),
      ...more,
      onConnect: (session, done) => {
        if (tls !== null) this.#hideLogIn(session)
        done()
      },
      onMailFrom: (_address, session, done) => {
        this.#touch(session)
        done()
      },
      onRcptTo: ({ address: to }, session, done) => {
        this.#touch(session)
        done(this.#judgeRecipient(to, session))
      },
      onData: (stream, session, done) => void this.#work(stream, session).then((text) => done(null, text), done),
      onClose: (session) => this.#forget(nameSession(session)),
    })
    this.#server.on('error', () => {}) // a client that is gone; without a listener it would be thrown
    const server = this.#server.server as Server
    server.on('connection', (socket: Socket) => this.#limit(socket, sessionMs))
  }

  /** Resolves to its address, as `smtp://127.0.0.1:4024`. */
  listen(): Promise<string> {
    const { host, port } = this.#address
    const server = this.#server.server as Server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      this.#server.listen(port, host, () =>
        resolve(`smtp://${formatHostPort({ host, port: (server.address() as AddressInfo).port })}`),
      )
    })
  }

  /** Sessions in progress get a second to end. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  /** Bounds the time of a session, and the connections of its networks. */
  #limit(socket: Socket, sessionMs: number): void {
    const session = new WeakRef(socket)
    const close = () => void session.deref()?.destroy()
    if (!this.#limits.admit(socket, { address: socket.remoteAddress ?? '', close })) {
      socket.end('421 4.7.0 Too many connections, try again later\r\n', close)
      return
    }
    const name = nameSession(socket)
    this.#sockets.set(name, session)
    // STARTTLS removes the listener of `close`. `onClose` then forgets the socket, and the timer may live on.
    const timer = setTimeout(() => {
      close()
      this.#forget(name, session)
    }, sessionMs).unref()
    socket.once('close', () => {
      clearTimeout(timer)
      this.#forget(name, session)
    })
  }

  /** @param only leaves a later connection from the same port alone */
  #forget(name: string, only = this.#sockets.get(name)): void {
    const socket = only?.deref()
    if (socket !== undefined) this.#limits.remove(socket)
    if (this.#sockets.get(name) === only) this.#sockets.delete(name)
  }

  /** A session that goes on has been idle for less long than others. */
  #touch(session: Session): void {
    const socket = this.#sockets.get(nameSession(session))?.deref()
    if (socket === undefined) return
    this.#limits.beginWork(socket)
    this.#limits.endWork(socket)
  }

  /** The library offers AUTH in clear, and a client that is set up without TLS would send its password. */
  #hideLogIn(session: Session): void {
    const connection = [...this.#server.connections].find((each) => each.session === session)
    if (connection === undefined) return
    const isSupported = connection._isSupported.bind(connection)
    connection._isSupported = (command) => (command !== 'AUTH' || connection.secure) && isSupported(command)
  }

  #judgeRecipient(address: string, session: Session): Error | null {
    if (session.envelope.rcptTo.length > 0) return oneRecipient
    const refusal = this.#handlers.judgeRecipient(address, session)
    if (refusal === null) return null
    const refused = (this.#refused.get(session) ?? 0) + 1
    this.#refused.set(session, refused)
    return refused > refusedMax ? tooManyRefused : refusal
  }

  /** Takes a message. Its session is not idle meanwhile. */
  async #work(stream: SMTPServerDataStream, session: Session): Promise<string | undefined> {
    const socket = this.#sockets.get(nameSession(session))?.deref()
    if (socket !== undefined) this.#limits.beginWork(socket)
    try {
      return await this.#handlers.take({ stream, cutOff: () => void socket?.destroy() }, session)
    } finally {
      if (socket !== undefined) this.#limits.endWork(socket)
    }
  }
}

/** The client's end of a connection: the SMTP library names sessions, and not their sockets. */
const nameSession = ({ remoteAddress = '', remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${toClientAddress(remoteAddress)} ${remotePort}`

/**
 * Null for a message of more than `max` bytes; it is read to its end all the same, because the answer comes
 * after it. One buffer grows: a list of chunks takes a hundred times the memory if a client sends single
 * bytes.
 * @param turns are taken for each 64 KiB, in however many pieces they come
 * @param charge gets the size of each piece
 */
export async function readBounded(
  stream: SMTPServerDataStream,
  max: number,
  turns: Turns,
  charge: (bytes: number) => void = () => {},
): Promise<Buffer | null> {
  let bytes = Buffer.allocUnsafe(16 * 1024)
  let size = 0
  let untaken = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const begin = size
    size += chunk.length
    charge(chunk.length)
    untaken += chunk.length
    if (untaken >= turnBytes) {
      await turns.next(untaken)
      untaken = 0
    }
    if (size > max) continue
    if (size > bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(size, Math.min(max, 2 * bytes.length)))
      bytes.copy(larger, 0, 0, begin)
      bytes = larger
    }
    chunk.copy(bytes, begin)
  }
  return size > max ? null : bytes.subarray(0, size)
}
