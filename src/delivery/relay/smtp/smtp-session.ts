/**
 * One SMTP session with a relay: opened by `connect.ts`, used for many messages in turn. This file holds
 * the dialogue of a message (RFC 5321 §3.3), its timeouts, and the last check before it is handed over:
 * when the relay has answered 354, and only if the link has not expired and the lease is valid.
 *
 * Where the relay offers PIPELINING (RFC 2920), MAIL, RCPT and DATA leave together. Where it offers DSN,
 * reports of failures return the headers only (RFC 3461): a whole message in a bounce would carry the
 * live link.
 */
import { chooseEnvelopeSender } from '../../../domain/app/envelope.ts'
import { findNamed } from '../../../domain/delivery/blame.ts'
import { type FailureClass, noReply, type Reply, type Stage } from '../../../domain/delivery/reply.ts'
import { classifyFailure, parseReply, type SmtpFailure } from '../../../domain/delivery/smtp-reply.ts'
import type { Source } from '../../../domain/redaction/redact.ts'
import type { EmailAddress } from '../../../domain/request/email-address.ts'
import type { TokenSource } from '../oauth/token-source.ts'
import { type Clearance, leaseLost, type Message, type Submission, workerStopped } from '../relay.ts'
import { commandMs, connect, type RelayConnection, type SmtpAddress } from './connect.ts'
import {
  accepts,
  deliverBy,
  envelopeCommands,
  isSafeInCommands,
  isTooLateToAsk,
  refusesParameter,
} from './envelope-commands.ts'
import { ReplyReader } from './reply-reader.ts'

const finalDotMs = 600_000
/** Hard limit for one submission, for servers that keep a socket alive with a byte now and then. */
const submissionMs = 900_000

const classify = (failure: SmtpFailure, { service }: SmtpAddress): FailureClass =>
  classifyFailure(failure, service?.smtp.accountRefusal ?? null)

export const failed = (failure: SmtpFailure, address: SmtpAddress): Submission => ({
  kind: 'failed',
  reply: failure.reply,
  stage: failure.stage,
  failureClass: classify(failure, address),
})

const toSource = ({ content }: Message): Source => ({ kind: 'reply', email: content })

/** `isOfRelay`: not about the sender or the recipient alone. */
export type ProbeRefusal = { readonly reply: Reply; readonly isOfRelay: boolean }

export class SmtpSession {
  readonly #connection: RelayConnection
  readonly #address: SmtpAddress
  readonly #reader = new ReplyReader()
  /** Replies that nothing has waited for yet. */
  readonly #replies: string[] = []
  #waiting: PromiseWithResolvers<string> | null = null
  #stage: Stage = 'sender'
  /** The result of the submission that is ended from outside, in place of a failure. */
  #interruption: Submission | null = null
  #onEnd: () => void = () => {}
  /** Why the session was lost. */
  #lostWhy = 'the connection was closed'
  /** False once the relay has refused `BY=`. */
  #asksForDeadline: boolean
  messages = 0
  readonly greetingName: string | null
  closed = false

  private constructor(connection: RelayConnection, address: SmtpAddress) {
    this.#connection = connection
    this.#address = address
    this.greetingName = address.greetingName
    this.#asksForDeadline = address.returnsLate
    const { socket } = connection
    socket.setTimeout(commandMs)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('timeout', () => this.#lose('the relay did not answer in time'))
    socket.on('error', (error) => this.#lose(error.message))
    socket.on('end', () => this.#lose('the relay closed the connection'))
    socket.on('close', () => this.#lose('the connection was closed'))
  }

  /** Connects and authenticates. Returns the failure if it could not, or not before `signal`. */
  static async open(
    address: SmtpAddress,
    signal: AbortSignal,
    tokens?: TokenSource | null,
  ): Promise<SmtpSession | SmtpFailure> {
    const connection = await connect(address, signal, tokens)
    return 'stage' in connection ? connection : new SmtpSession(connection, address)
  }

  /**
   * Sends one message, or aborts before the final dot. The session can be used again if it is not `closed`.
   */
  async submit(message: Message, clearance: Clearance): Promise<Submission> {
    this.messages += 1
    this.#stage = 'sender'
    this.#interruption = null
    const lifeLeftMs = Math.max(clearance.deadlineMs - performance.now(), 0)
    const submissionTimer = setTimeout(() => this.#lose('the submission took too long'), submissionMs)
    const lifeTimer = lifeLeftMs < submissionMs ? setTimeout(() => this.#expire(), lifeLeftMs) : undefined
    try {
      const submission = await this.#converse(message, clearance)
      // Servers differ in what a refusal leaves of the transaction, so the session is not used again.
      if (submission.kind !== 'accepted') this.close()
      return submission
    } catch (error) {
      this.close()
      return this.#interruption ?? this.#lost((error as Error).message, message)
    } finally {
      clearTimeout(lifeTimer)
      clearTimeout(submissionTimer)
    }
  }

  /**
   * Sends MAIL and RCPT without a message. Returns the reply if it is a failure of the relay as a whole: some
   * judge EHLO or the login only here. Otherwise null.
   */
  async probeEnvelope(sender: EmailAddress, to: EmailAddress, withinMs: number): Promise<ProbeRefusal | null> {
    const timer = setTimeout(() => this.#lose('no answer came in time'), withinMs)
    try {
      for (const command of [`MAIL FROM:<${sender}>\r\n`, `RCPT TO:<${to}>\r\n`]) {
        this.#connection.socket.write(command)
        const text = await this.#nextReply()
        if (text.startsWith('2')) continue
        const failure = { stage: this.#stage, reply: parseReply(text), errorCode: null }
        return { reply: failure.reply, isOfRelay: classify(failure, this.#address).scope === 'relay' }
      }
      return null
    } catch (error) {
      return { reply: noReply((error as Error).message), isOfRelay: true }
    } finally {
      clearTimeout(timer)
    }
  }

  async #converse(message: Message, { deadlineMs, isLeaseValid }: Clearance): Promise<Submission> {
    const { socket, extensions } = this.#connection
    this.#requireSilence()
    const { keepsSender, service } = this.#address
    const header = service?.smtp.referenceHeader?.(message.reference)
    const marks = header === undefined ? '' : `${header}\r\n`
    const sender = chooseEnvelopeSender(message, keepsSender)
    const bytes = message.bytes.length + marks.length
    const lifeLeftMs = deadlineMs - performance.now()
    if (this.#asksForDeadline && isTooLateToAsk(lifeLeftMs, extensions)) return { kind: 'expired' }
    const seconds = this.#asksForDeadline ? deliverBy(lifeLeftMs, extensions) : null
    if (!isSafeInCommands(sender) || !isSafeInCommands(message.to))
      return this.#lost('an address cannot be used in SMTP', message)
    const envelope = { ...message, sender, bytes }
    const commands = envelopeCommands({ ...envelope, seconds }, extensions)
    let refusal = await this.#say(commands)
    if (refusal !== null && seconds !== null && this.#stage === 'sender' && refusesParameter(refusal)) {
      this.#asksForDeadline = false
      if (extensions.pipelining) await this.#skipRefusals(commands.length - 1)
      refusal = await this.#say(envelopeCommands({ ...envelope, seconds: null }, extensions))
    }
    if (refusal !== null) return this.#refused(refusal, message)
    if (performance.now() >= deadlineMs) return { kind: 'expired' }
    if (!isLeaseValid()) return leaseLost
    this.#requireSilence() // a reply too many would be taken for the one to the message
    this.#stage = 'handed-over'
    socket.setTimeout(finalDotMs)
    socket.cork()
    if (marks !== '') socket.write(marks)
    socket.write(stuffDots(message.bytes))
    socket.write('.\r\n')
    socket.uncork()
    const reply = await this.#nextReply()
    socket.setTimeout(commandMs)
    if (reply.startsWith('2')) return { kind: 'accepted', reply: parseReply(reply, toSource(message)) }
    // A reply to something else: nobody knows what the relay has done with the message.
    return /^[45]/.test(reply) ? this.#refused(reply, message) : this.#lost(unexpectedReply, message)
  }

  /** Says the commands of one envelope. Returns the reply that refuses one of them, or null. */
  async #say(commands: readonly string[]): Promise<string | null> {
    const { socket, extensions } = this.#connection
    if (extensions.pipelining) socket.write(commands.join(''))
    for (const command of commands) {
      if (!extensions.pipelining) socket.write(command)
      const reply = await this.#nextReply()
      if (!accepts(command, extensions).test(reply)) return reply
      this.#stage = 'recipient' // the sender is accepted
    }
    return null
  }

  /** The replies to the commands behind one that was refused. */
  async #skipRefusals(count: number): Promise<void> {
    for (let n = 0; n < count; n++) if (/^[23]/.test(await this.#nextReply())) throw new Error(unexpectedReply)
  }

  #refused(text: string, message: Message): Submission {
    const sender = chooseEnvelopeSender(message, this.#address.keepsSender)
    const named = findNamed(text, message.to, [message.from, sender])
    const reply = parseReply(text, toSource(message))
    return failed({ stage: this.#stage, reply, errorCode: null, named }, this.#address)
  }

  /** Without a reply. */
  #lost(why: string, message: Message): Submission {
    return failed({ stage: this.#stage, reply: noReply(why, toSource(message)), errorCode: null }, this.#address)
  }

  #nextReply(): Promise<string> {
    const reply = this.#replies.shift()
    if (reply !== undefined) return Promise.resolve(reply)
    if (this.closed) return Promise.reject(new Error(this.#lostWhy))
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  /** Throws if the session is lost, or if the relay has sent a reply that nothing has asked for. */
  #requireSilence(): void {
    if (this.closed) throw new Error(this.#lostWhy)
    if (this.#replies.length > 0) throw new Error(unexpectedReply)
  }

  #read(chunk: Buffer): void {
    const fault = this.#reader.read(chunk, this.#replies)
    const waiting = this.#waiting
    const reply = waiting === null ? undefined : this.#replies.shift()
    if (reply !== undefined) {
      this.#waiting = null
      waiting?.resolve(reply)
    }
    // A reply that was complete before the fault counts.
    if (fault !== null) this.#lose(fault)
    else if (waiting === null) this.#lose(unexpectedReply)
  }

  #expire(): void {
    if (this.#stage === 'handed-over') return
    this.#interruption = { kind: 'expired' }
    this.#lose('the link expired')
  }

  /** Ends a submission in progress: it is given back before the final dot, and ambiguous after it. */
  stop(): void {
    if (this.#stage !== 'handed-over') this.#interruption = workerStopped
    this.#lose('the worker stopped')
  }

  /** Ends the session. A submission in progress fails, with `why` in place of a reply. */
  #lose(why: string): void {
    if (this.closed) return
    this.#lostWhy = why
    this.close()
    this.#waiting?.reject(new Error(why))
    this.#waiting = null
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.#connection.socket.destroy() // an aborted message is not flushed
    this.#onEnd()
  }

  /** Ends the session politely. */
  quit(): void {
    if (this.closed) return
    this.closed = true
    const { socket } = this.#connection
    socket.once('data', () => socket.destroy())
    socket.once('timeout', () => socket.destroy())
    socket.write('QUIT\r\n')
    this.#onEnd()
  }

  /** Calls `listener` once, when the session ends. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener
  }
}

const unexpectedReply = 'the relay sent an unexpected reply'

/** A line that begins with a dot gets another one (RFC 5321 §4.5.2). Composed messages end with CR LF. */
const stuffDots = (bytes: Buffer): Buffer =>
  bytes[0] === 0x2e || bytes.includes('\r\n.')
    ? Buffer.from(bytes.toString('latin1').replace(/^\./gm, '..'), 'latin1')
    : bytes
