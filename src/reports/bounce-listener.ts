/**
 * The bounce listener: an SMTP server (RFC 5321) that takes mail to bounce addresses and nothing else. It
 * says 250 once a report is recorded; while it cannot be, 451, and the sender keeps it. A stranger's mail
 * ends at RCPT, without the store.
 */

import { readFileSync } from 'node:fs'
import type { AddressInfo, Server, Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { reportMax } from '../domain/bounds.ts'
import { isPrivateNetwork, toClientAddress } from '../domain/client-network.ts'
import { ConnectionLimits } from '../domain/connection-limits.ts'
import { findReferences, type Reference } from '../domain/delivery/reference.ts'
import { formatHostPort } from '../domain/host-port.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { Turns } from '../domain/turns.ts'
import { StoreUnavailable } from '../store/store.ts'
import { openMail } from './read-report.ts'
import { matchReport, noMatch, type ReportDeps, recordReport } from './record-report.ts'
import { ReportRates } from './report-rates.ts'

export type BounceListenerOptions = {
  readonly address: { readonly host: string; readonly port: number }
  /** Certificate and private key in PEM, for STARTTLS; null for none. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  /** Complaints, which know no address of an email, come to this one. */
  readonly bounceAddress: EmailAddress | null
  readonly times?: Times
  /** Whether an address may be that of a proxy; `isPrivateNetwork` unless given. */
  readonly isProxy?: (address: string) => boolean
}

type Times = {
  /** How long a client may take for a command. */
  readonly stepMs: number
  readonly sessionMs: number
}

const usualTimes: Times = { stepMs: 60_000, sessionMs: 120_000 }
/** Each may hold a report of 512 KiB. */
const connectionsMax = 50
/** Bytes of a command line. */
const commandMax = 2048
/** When the service stops, sessions in progress get this long to end. */
const closeMs = 1000
/** Refused recipients of one session; more is somebody who guesses. */
const refusedMax = 20

/** So much of a message is read in a turn, in however many pieces it comes. */
const pieceBytes = 64 * 1024

const refuse = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode })

const noMailbox = refuse(550, '5.1.1 There is no such bounce address here')
const oneRecipient = refuse(452, '4.5.3 One recipient a message')
const tooMany = refuse(421, '4.7.0 Too many refused recipients')
const tooMuch = refuse(451, '4.7.0 Too much mail from your network; try again later')
const tooLarge = refuse(552, '5.3.4 The report is larger than 512 KiB')
const notNow = refuse(451, '4.3.0 The report cannot be recorded now; try again later')

export class BounceListener {
  readonly #deps: ReportDeps
  readonly #options: BounceListenerOptions
  readonly #server: SMTPServer
  readonly #refused = new WeakMap<SMTPServerSession, number>()
  readonly #limits: ConnectionLimits<Socket>
  readonly #rates: { readonly ofAnybody: ReportRates; readonly ofReferences: ReportRates }
  readonly #turns = new Turns()
  /** The socket of each session, by the client's address and port. */
  readonly #sockets = new Map<string, WeakRef<Socket>>()

  constructor(deps: ReportDeps, options: BounceListenerOptions) {
    this.#deps = deps
    this.#options = options
    const { isProxy = isPrivateNetwork, times = usualTimes, tls } = options
    this.#limits = new ConnectionLimits(connectionsMax, isProxy)
    this.#rates = { ofAnybody: new ReportRates(isProxy), ofReferences: new ReportRates(isProxy) }
    this.#server = new SMTPServer({
      name: 'postern',
      banner: 'reports about emails',
      size: reportMax,
      maxCommandLength: commandMax,
      socketTimeout: times.stepMs,
      closeTimeout: closeMs,
      disableReverseLookup: true,
      // With it, Exim sends QUIT right behind a message and closes its side: it would get no answer, and
      // send the message again.
      hidePIPELINING: true,
      disabledCommands: ['AUTH', ...(tls === null ? ['STARTTLS'] : [])],
      logger: false,
      ...(tls !== null && { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }),
      onMailFrom: (_address, session, done) => {
        this.#touch(session)
        done()
      },
      onRcptTo: ({ address }, session, done) => {
        this.#touch(session)
        done(this.#judgeRecipient(address, session))
      },
      onData: (stream, session, done) => void this.#work(stream, session).then(() => done(), done),
      onClose: (session) => this.#forget(nameSession(session)),
    })
    this.#server.on('error', () => {}) // a client that is gone; without a listener it would be thrown
    const server = this.#server.server as Server
    server.on('connection', (socket: Socket) => this.#limit(socket, times.sessionMs))
  }

  /** Resolves to its address, as `smtp://127.0.0.1:4024`. */
  listen(): Promise<string> {
    const { host, port } = this.#options.address
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
  #touch(session: SMTPServerSession): void {
    const socket = this.#sockets.get(nameSession(session))?.deref()
    if (socket === undefined) return
    this.#limits.beginWork(socket)
    this.#limits.endWork(socket)
  }

  /** Takes a message. Its session is not idle meanwhile. */
  async #work(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const socket = this.#sockets.get(nameSession(session))?.deref()
    if (socket !== undefined) this.#limits.beginWork(socket)
    try {
      await this.#take(stream, session, () => void socket?.destroy())
    } finally {
      if (socket !== undefined) this.#limits.endWork(socket)
    }
  }

  /** Null for a recipient that is taken. Asks no store. */
  #judgeRecipient(address: string, session: SMTPServerSession): Error | null {
    if (session.envelope.rcptTo.length > 0) return oneRecipient
    const isKnown = this.#isBounceAddress(address) || this.#namesEmail(findReferences(address))
    if (isKnown && this.#ratesOf(address).mayBegin(session.remoteAddress)) return null
    const refused = (this.#refused.get(session) ?? 0) + 1
    this.#refused.set(session, refused)
    if (refused > refusedMax) return tooMany
    return isKnown ? tooMuch : noMailbox
  }

  async #take(
    stream: SMTPServerDataStream,
    { envelope, remoteAddress }: SMTPServerSession,
    cutOff: () => void,
  ): Promise<void> {
    const to = envelope.rcptTo[0]?.address ?? ''
    const rates = this.#ratesOf(to)
    let read = 0
    const bytes = await readBounded(stream, async (size) => {
      if (!rates.charge(remoteAddress, size)) cutOff()
      read += size
      if (read < pieceBytes) return
      await this.#turns.next(read)
      read = 0
    })
    if (bytes === null) throw tooLarge
    const sender = envelope.mailFrom === false ? '' : envelope.mailFrom.address
    const delivered = Buffer.concat([Buffer.from(`Return-Path: <${sender}>\r\n`), bytes]) // RFC 5321 §4.4
    await this.#turns.next(bytes.length)
    try {
      // Mail that names no email here is not read further: anybody may send it to the bounce address.
      const { references, read } = await openMail(delivered, to)
      const match = this.#namesEmail(references) ? await matchReport(this.#deps.store, await read()) : noMatch
      const { kind } = await recordReport(this.#deps, match, 'mail')
      if (kind === 'waiting') throw notNow
    } catch (error) {
      if (error === notNow) throw notNow
      if (!(error instanceof StoreUnavailable)) this.#deps.emit({ kind: 'bug', doing: 'recording a report', error })
      throw notNow
    }
  }

  #namesEmail(references: readonly Reference[]): boolean {
    return references.some((reference) => this.#deps.store.openReference(reference) !== null)
  }

  /** Strangers know no address but the bounce address: they do not use up the rate of the others. */
  #ratesOf(to: string): ReportRates {
    return this.#isBounceAddress(to) ? this.#rates.ofAnybody : this.#rates.ofReferences
  }

  #isBounceAddress(to: string): boolean {
    return to.toLowerCase() === this.#options.bounceAddress?.toLowerCase()
  }
}

/** The client's end of a connection: the SMTP library names sessions, and not their sockets. */
const nameSession = ({ remoteAddress = '', remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${toClientAddress(remoteAddress)} ${remotePort}`

/**
 * Null if it is too large; it is read to its end all the same, because the answer comes after it. One buffer
 * grows: a list of chunks takes a hundred times the memory if a client sends single bytes.
 */
async function readBounded(
  stream: SMTPServerDataStream,
  charge: (bytes: number) => Promise<void>,
): Promise<Buffer | null> {
  let bytes = Buffer.allocUnsafe(16 * 1024)
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const begin = size
    size += chunk.length
    await charge(chunk.length)
    if (size > reportMax) continue
    if (size > bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(size, Math.min(reportMax, 2 * bytes.length)))
      bytes.copy(larger, 0, 0, begin)
      bytes = larger
    }
    chunk.copy(bytes, begin)
  }
  return size > reportMax ? null : bytes.subarray(0, size)
}
