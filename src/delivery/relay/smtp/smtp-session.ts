/**
 * One SMTP session with a relay, over nodemailer's SMTPConnection: opened, authenticated, used for
 * many messages in turn. This file holds the timeouts, the TLS rules, and the last check before a
 * message is handed over: when the relay has answered 354, and only if the link has not expired and the
 * lease is valid.
 *
 * Outside loopback TLS is required and its certificate verified; a stripped STARTTLS or a bad
 * certificate ends the session before anything is sent. On loopback STARTTLS is used only if the
 * relay's address asks for it. Where the relay offers DSN, reports of failures return the headers
 * only (RFC 3461): a whole message in a bounce would carry the live link.
 *
 * This is the only file that uses private parts of nodemailer: `_socket`, and the fact that the
 * connection calls `pipe` of the message once the relay has answered 354.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import {
  classifyFailure,
  noReply,
  parseReply,
  type SmtpFailure,
  type SmtpStage,
} from '../../../domain/delivery/smtp-reply.ts'
import type { Clearance, Message, Submission } from '../relay.ts'

export type RelayAddress = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte (port 465) or by STARTTLS; `none` is for loopback only. */
  readonly tls: 'implicit' | 'starttls' | 'none'
  readonly credentials: { readonly user: string; readonly pass: string } | null
  /** Certificate authorities in PEM, in place of those that Node trusts. */
  readonly ca?: string
}

const connectMs = 30_000
const greetingMs = 30_000
const commandMs = 60_000
const finalDotMs = 600_000
/** Hard limit for one submission, for servers that keep a socket alive with a byte now and then. */
const submissionMs = 900_000

type SmtpError = Error & { code?: string; response?: string }

export const workerStopped: Submission = { kind: 'stopped', why: 'the worker stopped' }

function toFailure(stage: SmtpStage, { code, response, message }: SmtpError): SmtpFailure {
  const reply = response === undefined ? noReply(`${code ?? 'ERROR'}: ${message}`) : parseReply(response)
  return { stage, reply, errorCode: code ?? null }
}

export const failed = (failure: SmtpFailure): Submission => ({
  kind: 'failed',
  failure,
  failureClass: classifyFailure(failure),
})

export class SmtpSession {
  readonly #connection: SMTPConnection
  #stop: () => void = () => {}
  messages = 0
  closed = false

  private constructor(connection: SMTPConnection) {
    this.#connection = connection
    connection.on('end', () => {
      this.closed = true
    })
  }

  /** Connects and authenticates. Returns the failure if it could not, or not before `signal`. */
  static async open(address: RelayAddress, signal: AbortSignal): Promise<SmtpSession | SmtpFailure> {
    const connection = newConnection(address)
    const session = new SmtpSession(connection)
    const giveUp = () => connection.close()
    signal.addEventListener('abort', giveUp)
    try {
      await step(connection, (done) => connection.connect(done))
      const { credentials } = address
      // A copy: nodemailer writes into the object.
      if (credentials !== null) await step(connection, (done) => connection.login({ ...credentials }, done))
      return session
    } catch (error) {
      connection.close()
      const timedOut = Object.assign(new Error('no session in time'), { code: 'ETIMEDOUT' })
      return toFailure('connect', signal.aborted ? timedOut : (error as SmtpError))
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Sends one message, or aborts before the final dot. */
  submit(message: Message, { deadlineMs, isLeaseValid }: Clearance): Promise<Submission> {
    this.messages += 1
    const connection = this.#connection
    const { promise, resolve } = Promise.withResolvers<Submission>()
    let stage: SmtpStage = 'envelope'
    const abort = (submission: Submission) => {
      this.close()
      resolve(submission)
    }
    const fail = (error: SmtpError) => failed(toFailure(stage, error))
    this.#stop = () => abort(stage === 'final-dot' ? fail(new Error('the worker stopped')) : workerStopped)
    const submissionTimer = setTimeout(
      () => abort(fail(new Error('the submission took too long'))),
      submissionMs,
    )
    const lifeLeftMs = Math.min(Math.max(deadlineMs - performance.now(), 0), submissionMs)
    const lifeTimer = setTimeout(() => abort({ kind: 'expired' }), lifeLeftMs)
    const body = new CheckedMessage((receiver) => {
      if (performance.now() >= deadlineMs) return abort({ kind: 'expired' })
      if (!isLeaseValid())
        return abort({ kind: 'stopped', why: 'the lease was lost before the message was sent' })
      clearTimeout(lifeTimer)
      stage = 'final-dot'
      handOver(connection, receiver, message.bytes)
    })
    connection.on('error', ignore)
    connection.send(envelopeOf(message), body, (error, info) => {
      socketOf(connection)?.setTimeout(commandMs)
      if (error !== null) resolve(fail(error as SmtpError))
      else resolve({ kind: 'accepted', reply: parseReply(info?.response ?? '') })
    })
    return promise.finally(() => {
      clearTimeout(lifeTimer)
      clearTimeout(submissionTimer)
      connection.removeListener('error', ignore)
    })
  }

  /** Ends a submission in progress: it is given back before the final dot, and ambiguous after it. */
  stop(): void {
    this.#stop()
    this.close()
  }

  close(): void {
    this.closed = true
    this.#connection.close()
  }

  quit(): void {
    this.closed = true
    this.#connection.on('error', ignore)
    this.#connection.quit()
  }

  /** Calls `listener` once, when the server ends the session or an idle error does. */
  onEnd(listener: () => void): void {
    this.#connection.once('end', listener)
    this.#connection.on('error', ignore) // callers learn of errors through their callbacks
  }
}

function newConnection(address: RelayAddress): SMTPConnection {
  return new SMTPConnection({
    host: address.host,
    port: address.port,
    secure: address.tls === 'implicit',
    requireTLS: address.tls === 'starttls',
    ignoreTLS: address.tls === 'none',
    connectionTimeout: connectMs,
    greetingTimeout: greetingMs,
    socketTimeout: commandMs,
    socketCloseTimeout: 0, // an aborted message is not flushed
    tls: { minVersion: 'TLSv1.2', ...(address.ca === undefined ? {} : { ca: address.ca }) },
    logger: false,
  })
}

/** The DSN parameters are sent only to relays that offer the extension. */
const envelopeOf = ({ from, to, bytes, email }: Message) => ({
  from,
  to,
  size: bytes.length,
  dsn: { ret: 'HDRS', envid: email.id, notify: 'FAILURE,DELAY', recipient: `rfc822;${to}` },
})

/** The message and its final dot leave in one write. */
function handOver(connection: SMTPConnection, receiver: NodeJS.WritableStream, bytes: Buffer): void {
  const socket = socketOf(connection)
  socket?.setTimeout(finalDotMs)
  socket?.cork()
  receiver.end(bytes)
  setImmediate(() => socket?.uncork())
}

/** A message whose bytes are requested only when the relay has answered 354: the last time to decide. */
class CheckedMessage extends Readable {
  readonly #handOver: (receiver: NodeJS.WritableStream) => void

  constructor(handOver: (receiver: NodeJS.WritableStream) => void) {
    super()
    this.#handOver = handOver
  }

  override pipe<T extends NodeJS.WritableStream>(receiver: T): T {
    this.#handOver(receiver)
    return receiver
  }
}

const ignore = () => {}

const socketOf = (connection: SMTPConnection): Socket | null => connection._socket || null

function step(
  connection: SMTPConnection,
  begin: (done: (error?: Error | null) => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error | null) => {
      connection.removeListener('error', settle)
      connection.removeListener('end', ended)
      if (error == null) return resolve()
      connection.on('error', ignore)
      reject(error)
    }
    const ended = () => settle(new Error('the connection was closed'))
    connection.once('error', settle)
    connection.once('end', ended)
    begin(settle)
  })
}
