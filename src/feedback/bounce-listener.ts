/**
 * The bounce listener: an SMTP server (RFC 5321) that takes mail to bounce addresses and nothing else. It
 * says 250 once a report is recorded; while it cannot be, 451, and the sender keeps it. It has no parser of
 * MIME, and a stranger's mail ends at RCPT, without the store.
 */
import { readFileSync } from 'node:fs'
import type { AddressInfo, Server, Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { reportMax } from '../domain/bounds.ts'
import { bareAddress, toClientNetwork } from '../domain/client-network.ts'
import { findReferences } from '../domain/delivery/reference.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { StoreUnavailable } from '../store/store.ts'
import { readReport } from './read-report.ts'
import { matchReport, type ReportDeps, recordReport } from './record-report.ts'

export type BounceListenerOptions = {
  readonly address: { readonly host: string; readonly port: number }
  /** Certificate and private key in PEM, for STARTTLS; null for none. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  /** Complaints, which know no address of an email, come to this one. */
  readonly bounceAddress: EmailAddress | null
  readonly times?: Times
}

type Times = {
  /** How long a client may take for a command. */
  readonly stepMs: number
  readonly sessionMs: number
}

const usualTimes: Times = { stepMs: 60_000, sessionMs: 120_000 }
const clientsMax = 50
/** Connections, with those that were refused and are not closed yet; more are closed at once. */
const connectionsMax = 4 * clientsMax
/** From one network, which cannot keep others out then. A mail server opens fewer. */
const connectionsOfOneMax = clientsMax / 2
/** Bytes of a command line. */
const commandMax = 2048
/** When the service stops, sessions in progress get this long to end. */
const closeMs = 1000
/** Refused recipients of one session; more is somebody who guesses. */
const refusedMax = 20

const refuse = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode })

const noMailbox = refuse(550, '5.1.1 There is no such bounce address here')
const oneRecipient = refuse(452, '4.5.3 One recipient a message')
const tooMany = refuse(421, '4.7.0 Too many recipients that do not exist')
const tooLarge = refuse(552, '5.3.4 The report is larger than 512 KiB')
const notNow = refuse(451, '4.3.0 The report cannot be recorded now; try again later')

export class BounceListener {
  readonly #deps: ReportDeps
  readonly #options: BounceListenerOptions
  readonly #server: SMTPServer
  readonly #refused = new WeakMap<SMTPServerSession, number>()
  /** The connections of each network; some may have closed. */
  readonly #networks = new Map<string, WeakRef<Socket>[]>()

  constructor(deps: ReportDeps, options: BounceListenerOptions) {
    this.#deps = deps
    this.#options = options
    const { times = usualTimes, tls } = options
    this.#server = new SMTPServer({
      name: 'postern',
      banner: 'reports about emails',
      size: reportMax,
      maxClients: clientsMax,
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
      onRcptTo: ({ address }, session, done) => done(this.#judgeRecipient(address, session)),
      onData: (stream, session, done) => void this.#take(stream, session).then(() => done(), done),
    })
    this.#server.on('error', () => {}) // a client that is gone; without a listener it would be thrown
    const server = this.#server.server as Server
    server.maxConnections = connectionsMax
    server.on('connection', (socket: Socket) => this.#limit(socket, times.sessionMs))
  }

  /** Resolves to its address, as `smtp://127.0.0.1:4024`. */
  listen(): Promise<string> {
    const { host, port } = this.#options.address
    const server = this.#server.server as Server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      this.#server.listen(port, host, () =>
        resolve(`smtp://${host}:${(server.address() as AddressInfo).port}`),
      )
    })
  }

  /** Sessions in progress get a second to end. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  /** Bounds the time of a session, and the connections of its network. */
  #limit(socket: Socket, sessionMs: number): void {
    const network = toClientNetwork(bareAddress(socket.remoteAddress ?? ''))
    const open = this.#listOpen(network)
    if (open.length >= connectionsOfOneMax) {
      socket.destroy()
      return
    }
    const session = new WeakRef(socket)
    this.#networks.set(network, [...open, session])
    // STARTTLS removes the listener of `close`: the timer may live on, and the list holds what has closed.
    const timer = setTimeout(() => {
      session.deref()?.destroy()
      this.#listOpen(network)
    }, sessionMs).unref()
    socket.once('close', () => {
      clearTimeout(timer)
      this.#listOpen(network)
    })
  }

  /** The open connections of a network; others are forgotten. */
  #listOpen(network: string): WeakRef<Socket>[] {
    const open = (this.#networks.get(network) ?? []).filter((socket) => socket.deref()?.destroyed === false)
    if (open.length > 0) this.#networks.set(network, open)
    else this.#networks.delete(network)
    return open
  }

  /** Null for a recipient that is taken. Asks no store. */
  #judgeRecipient(address: string, session: SMTPServerSession): Error | null {
    if (session.envelope.rcptTo.length > 0) return oneRecipient
    const { bounceAddress } = this.#options
    if (address.toLowerCase() === bounceAddress?.toLowerCase()) return null
    const { store } = this.#deps
    if (findReferences(address).some((reference) => store.openReference(reference) !== null)) return null
    const refused = (this.#refused.get(session) ?? 0) + 1
    this.#refused.set(session, refused)
    return refused > refusedMax ? tooMany : noMailbox
  }

  async #take(stream: SMTPServerDataStream, { envelope }: SMTPServerSession): Promise<void> {
    const bytes = await readBounded(stream)
    if (bytes === null) throw tooLarge
    const sender = envelope.mailFrom === false ? '' : envelope.mailFrom.address
    const delivered = Buffer.concat([Buffer.from(`Return-Path: <${sender}>\r\n`), bytes]) // RFC 5321 §4.4
    const report = readReport(delivered, envelope.rcptTo[0]?.address ?? null)
    try {
      const match = await matchReport(this.#deps.store, report)
      const { kind } = await recordReport(this.#deps, match, 'mail')
      if (kind === 'waiting') throw notNow
    } catch (error) {
      if (error === notNow) throw notNow
      if (!(error instanceof StoreUnavailable))
        this.#deps.emit({ kind: 'bug', doing: 'recording a report', error })
      throw notNow
    }
  }
}

/**
 * Null if it is too large; it is read to its end all the same, because the answer comes after it. One buffer
 * grows: a list of chunks takes a hundred times the memory if a client sends single bytes.
 */
async function readBounded(stream: SMTPServerDataStream): Promise<Buffer | null> {
  let bytes = Buffer.allocUnsafe(16 * 1024)
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const begin = size
    size += chunk.length
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
