/**
 * A smarthost: sessions that stay open between messages, a bound on connections and on messages a
 * second, and a breaker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FailureClass } from '../../../domain/delivery/smtp-reply.ts'
import type { Clearance, Message, Relay, Submission } from '../relay.ts'
import { Breaker } from './breaker.ts'
import type { RelayAddress } from './connect.ts'
import { failed, SmtpSession, workerStopped } from './smtp-session.ts'

export type SmtpRelayOptions = {
  readonly address: RelayAddress
  readonly connectionsMax: number
  /** Messages a second; null for no bound. */
  readonly rate: number | null
  readonly random: () => number
  /** The relay became unavailable, or available again. */
  readonly onChange: (change: { relay: string; available: boolean; reason: string }) => void
}

const messagesPerSession = 1000
const idleMs = 20_000
/** For connecting, greeting, TLS and AUTH together. */
const openMs = 60_000
/** A probe that hangs delays one email, so it gets less time. */
const probeOpenMs = 5_000

export class SmtpRelay implements Relay {
  readonly name: string
  readonly #options: SmtpRelayOptions
  readonly #breaker: Breaker
  readonly #idle: SmtpSession[] = []
  readonly #idleTimers = new Map<SmtpSession, NodeJS.Timeout>()
  readonly #stopped = new AbortController()
  readonly #busy = new Set<SmtpSession>()
  #inProgress = 0
  #connecting = 0
  #nextSendMs = 0

  constructor(options: SmtpRelayOptions) {
    this.#options = options
    this.name = `${options.address.host}:${options.address.port}`
    const now = () => performance.now()
    this.#breaker = new Breaker({ connectionsMax: options.connectionsMax, now, random: options.random })
  }

  isAvailable = (): boolean => !this.#breaker.open
  capacity = (): number => this.#breaker.capacity()
  free = (): number => this.#breaker.capacity() - this.#inProgress
  probeInMs = (): number => this.#breaker.probeInMs()
  connections = () => ({
    connecting: this.#connecting,
    open: this.#busy.size + this.#idle.length,
    busy: this.#busy.size,
    allowed: this.#breaker.capacity(),
    max: this.#options.connectionsMax,
  })

  async submit(message: Message, clearance: Clearance): Promise<Submission> {
    this.#inProgress += 1
    try {
      return this.#note(await this.#send(message, clearance))
    } finally {
      this.#inProgress -= 1
    }
  }

  async #send(message: Message, clearance: Clearance): Promise<Submission> {
    const inTime = await this.#waitForRate(clearance.deadlineMs)
    if (this.#stopped.signal.aborted) return workerStopped
    if (!inTime) return { kind: 'expired' }
    const reused = this.#takeIdle()
    if (reused !== undefined) {
      const submission = await this.#sendOver(reused, message, clearance)
      if (!wasStale(submission)) return submission
    }
    const session = await this.#open(clearance.deadlineMs)
    return session instanceof SmtpSession ? this.#sendOver(session, message, clearance) : session
  }

  /** A new session, or why there is none. */
  async #open(deadlineMs: number): Promise<SmtpSession | Submission> {
    const lifeLeftMs = Math.floor(deadlineMs - performance.now())
    if (this.#stopped.signal.aborted) return workerStopped
    if (lifeLeftMs <= 0) return { kind: 'expired' }
    const budgetMs = Math.min(this.#breaker.open ? probeOpenMs : openMs, lifeLeftMs)
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(budgetMs)])
    this.#connecting += 1
    const session = await SmtpSession.open(this.#options.address, signal).finally(() => {
      this.#connecting -= 1
    })
    if (this.#stopped.signal.aborted) {
      if (session instanceof SmtpSession) session.close()
      return workerStopped
    }
    if (session instanceof SmtpSession) {
      session.onEnd(() => this.#drop(session))
      return session
    }
    return budgetMs === lifeLeftMs && signal.aborted ? { kind: 'expired' } : failed(session)
  }

  async #sendOver(session: SmtpSession, message: Message, clearance: Clearance): Promise<Submission> {
    this.#busy.add(session)
    const submission = await session.submit(message, clearance)
    this.#busy.delete(session)
    this.#giveBack(session)
    return submission
  }

  /** Waits until the rate allows this message. False if that is after the deadline. */
  async #waitForRate(deadlineMs: number): Promise<boolean> {
    const { rate } = this.#options
    if (rate === null) return true
    const now = performance.now()
    const sendMs = Math.max(this.#nextSendMs, now)
    this.#nextSendMs = sendMs + 1000 / rate
    const waitMs = Math.ceil(Math.min(sendMs, deadlineMs) - now)
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: this.#stopped.signal }).catch(() => {})
    return sendMs < deadlineMs
  }

  #note(submission: Submission): Submission {
    const wasOpen = this.#breaker.open
    if (submission.kind === 'accepted') this.#breaker.succeeded()
    if (submission.kind === 'failed') {
      this.#noteFailure(submission.failureClass, submission.failure.reply.code !== null)
    }
    const { open } = this.#breaker
    if (open !== wasOpen) {
      const reason = submission.kind === 'failed' ? submission.failure.reply.text : ''
      this.#options.onChange({ relay: this.name, available: !open, reason })
    }
    return submission
  }

  #noteFailure({ scope, lasting, slowDown }: FailureClass, answered: boolean): void {
    const sessions = this.#busy.size + this.#idle.length
    // A relay that refuses one connection and serves others has reached its limit of connections.
    if (!this.#breaker.open && scope === 'relay' && answered && !lasting && sessions > 0) {
      this.#breaker.limitTo(sessions)
      return
    }
    if (slowDown) this.#breaker.slowDown()
    if (scope === 'relay') this.#breaker.failed({ lasting, answered })
    else if (answered) this.#breaker.succeeded() // the relay itself works
  }

  #takeIdle(): SmtpSession | undefined {
    const session = this.#idle.pop()
    if (session !== undefined) clearTimeout(this.#idleTimers.get(session))
    return session
  }

  #giveBack(session: SmtpSession): void {
    if (session.closed) return
    if (session.messages >= messagesPerSession || this.#stopped.signal.aborted) session.quit()
    else {
      this.#idle.push(session)
      const retire = setTimeout(() => this.#retire(session), idleMs)
      this.#idleTimers.set(session, retire)
    }
  }

  #retire(session: SmtpSession): void {
    this.#drop(session)
    session.quit()
  }

  #drop(session: SmtpSession): void {
    const index = this.#idle.indexOf(session)
    if (index >= 0) this.#idle.splice(index, 1)
    clearTimeout(this.#idleTimers.get(session))
    this.#idleTimers.delete(session)
  }

  close(): void {
    this.#stopped.abort()
    for (const session of [...this.#busy]) session.stop()
    for (const session of [...this.#idle]) this.#retire(session)
  }
}

/** The server ended an idle session before it read this message: nothing was attempted. */
const wasStale = (submission: Submission): boolean =>
  submission.kind === 'failed' &&
  submission.failure.stage === 'envelope' &&
  submission.failure.reply.code === null
