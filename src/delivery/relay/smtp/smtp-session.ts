/**
 * One SMTP session with a relay, over nodemailer's SMTPConnection: opened, authenticated, used for
 * many messages in turn. Here live the timeouts, the TLS rules, and the last look at the clock: the
 * message is handed over only when the relay says 354, and only while the link still lives.
 *
 * Outside loopback TLS is required and its certificate verified; a stripped STARTTLS or a bad
 * certificate ends the session before anything is sent. On loopback STARTTLS is used only where the
 * relay's address asks for it.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { redactReply, type SmtpFailure, type SmtpStage } from '../../../domain/delivery/smtp-reply.ts'
import type { EmailAddress } from '../../../domain/request/email-address.ts'

export type RelayAddress = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte (port 465) or by STARTTLS; `none` is for loopback alone. */
  readonly tls: 'implicit' | 'starttls' | 'none'
  readonly credentials: { readonly user: string; readonly pass: string } | null
  /** More certificate authorities, PEM. */
  readonly ca?: string
}

/** An envelope with one recipient, and the message as it goes over the wire. */
export type Message = { readonly from: EmailAddress; readonly to: EmailAddress; readonly bytes: Buffer }

/** Until when, and whether still, a message may be handed over. */
export type Clearance = {
  /** The link's end, on the clock of `performance.now()`. */
  readonly deadlineMs: number
  /** The lease holds: a worker that was paused for longer must not send what another has by now. */
  readonly isLeaseValid: () => boolean
}

export type Submission =
  | { readonly kind: 'accepted'; readonly reply: string }
  | { readonly kind: 'failed'; readonly failure: SmtpFailure }
  | { readonly kind: 'expired' }
  /** The worker is ending, or lost its lease; nothing was handed over. */
  | { readonly kind: 'stopped'; readonly why: string }

const connectMs = 30_000
const greetingMs = 30_000
const commandMs = 60_000
const finalDotMs = 600_000
/** However slowly a tarpit trickles. */
const attemptMs = 900_000

type SmtpError = Error & { code?: string; response?: string }

export const workerStopped: Submission = { kind: 'stopped', why: 'the worker stopped' }

const describe = (error: SmtpError): string => redactReply(`${error.code ?? 'ERROR'}: ${error.message}`)

const failed = (stage: SmtpStage, error: SmtpError): Submission => ({
  kind: 'failed',
  failure: {
    stage,
    reply: error.response === undefined ? null : redactReply(error.response),
    fault: describe(error),
  },
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

  /** Connects and authenticates; the failure where it could not, or not before `signal`. */
  static async open(address: RelayAddress, signal: AbortSignal): Promise<SmtpSession | SmtpFailure> {
    const connection = new SMTPConnection({
      host: address.host,
      port: address.port,
      secure: address.tls === 'implicit',
      requireTLS: address.tls === 'starttls',
      ignoreTLS: address.tls === 'none',
      connectionTimeout: connectMs,
      greetingTimeout: greetingMs,
      socketTimeout: commandMs,
      socketCloseTimeout: 0, // what is given up is not flushed
      tls: { minVersion: 'TLSv1.2', ...(address.ca === undefined ? {} : { ca: address.ca }) },
      logger: false,
    })
    const session = new SmtpSession(connection)
    const giveUp = () => connection.close()
    signal.addEventListener('abort', giveUp)
    try {
      await step(connection, (done) => connection.connect(done))
      const { credentials } = address
      if (credentials !== null) await step(connection, (done) => connection.login(credentials, done))
      return session
    } catch (error) {
      connection.close()
      const { response } = error as SmtpError
      const fault = signal.aborted ? 'ETIMEDOUT: no session in time' : describe(error as SmtpError)
      return { stage: 'connect', reply: response === undefined ? null : redactReply(response), fault }
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Sends one message, or gives it up before the final dot. */
  submit(message: Message, { deadlineMs, isLeaseValid }: Clearance): Promise<Submission> {
    this.messages += 1
    const connection = this.#connection
    return new Promise((resolve) => {
      let stage: SmtpStage = 'envelope'
      const settle = (submission: Submission) => {
        clearTimeout(lifeTimer)
        clearTimeout(attemptTimer)
        connection.removeListener('error', ignore)
        resolve(submission)
      }
      const abort = (submission: Submission) => {
        this.close()
        settle(submission)
      }
      this.#stop = () =>
        abort(stage === 'final-dot' ? failed(stage, new Error('the worker ended')) : workerStopped)
      const whole = () => abort(failed(stage, new Error('the attempt took too long')))
      const attemptTimer = setTimeout(whole, attemptMs)
      const lifeLeftMs = Math.min(Math.max(deadlineMs - performance.now(), 0), attemptMs)
      const lifeTimer = setTimeout(() => abort({ kind: 'expired' }), lifeLeftMs)
      const body = new LastLook((handOver) => {
        if (performance.now() >= deadlineMs) return abort({ kind: 'expired' })
        if (!isLeaseValid())
          return abort({ kind: 'stopped', why: 'the lease lapsed before the message was sent' })
        clearTimeout(lifeTimer)
        stage = 'final-dot'
        const socket = socketOf(connection)
        socket?.setTimeout(finalDotMs)
        socket?.cork() // the message and the final dot leave together
        handOver.end(message.bytes)
        setImmediate(() => socket?.uncork())
      })
      connection.on('error', ignore)
      connection.send(
        { from: message.from, to: message.to, size: message.bytes.length },
        body,
        (error, info) => {
          socketOf(connection)?.setTimeout(commandMs)
          if (error !== null) settle(failed(stage, error as SmtpError))
          else settle({ kind: 'accepted', reply: redactReply(info?.response ?? '') })
        },
      )
    })
  }

  /** Ends a submission that is under way: given back before the final dot, ambiguous after it. */
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

  /** Called once, when the server ends the session or an idle error does. */
  onEnd(listener: () => void): void {
    this.#connection.once('end', listener)
    this.#connection.on('error', ignore) // errors reach whoever waits through their callbacks
  }
}

/** A message that is asked for only when the relay has said 354: the last moment to decide. */
class LastLook extends Readable {
  readonly #handOver: (to: NodeJS.WritableStream) => void

  constructor(handOver: (to: NodeJS.WritableStream) => void) {
    super()
    this.#handOver = handOver
  }

  override pipe<T extends NodeJS.WritableStream>(to: T): T {
    this.#handOver(to)
    return to
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
