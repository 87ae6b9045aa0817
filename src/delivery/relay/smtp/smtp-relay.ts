/**
 * A smarthost: sessions kept open between messages, at most so many at once, at most so many
 * messages a second, behind a breaker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { classifyFailure, parseReply, type SmtpFailure } from '../../../domain/delivery/smtp-reply.ts'
import type { Relay } from '../relay.ts'
import { Breaker } from './breaker.ts'
import {
  type Clearance,
  type Message,
  type RelayAddress,
  SmtpSession,
  type Submission,
  workerStopped,
} from './smtp-session.ts'

export type SmtpRelayOptions = {
  readonly address: RelayAddress
  readonly connectionsMax: number
  /** Messages a second; null for no bound. */
  readonly rate: number | null
  readonly random: () => number
  /** The relay as a whole became unavailable, or available again: for the operator. */
  readonly onChange: (change: { relay: string; available: boolean; reason: string }) => void
}

const messagesPerSession = 1000
const idleMs = 20_000
/** For connecting, greeting, TLS and AUTH together. */
const openMs = 60_000
/** A probe that hangs holds up one email: not for long. */
const probeOpenMs = 5_000

export class SmtpRelay implements Relay {
  readonly name: string
  readonly #options: SmtpRelayOptions
  readonly #breaker: Breaker
  readonly #idle: SmtpSession[] = []
  readonly #idleTimers = new Map<SmtpSession, NodeJS.Timeout>()
  readonly #stopped = new AbortController()
  readonly #busy = new Set<SmtpSession>()
  #underWay = 0
  #nextSlotMs = 0

  constructor(options: SmtpRelayOptions) {
    this.#options = options
    this.name = `${options.address.host}:${options.address.port}`
    const now = () => performance.now()
    this.#breaker = new Breaker({ connectionsMax: options.connectionsMax, now, random: options.random })
  }

  isOpen = (): boolean => this.#breaker.open
  capacity = (): number => this.#breaker.capacity()
  free = (): number => this.#breaker.capacity() - this.#underWay
  probeInMs = (): number => this.#breaker.probeInMs()

  async submit(message: Message, clearance: Clearance): Promise<Submission> {
    this.#underWay += 1
    try {
      return this.#note(await this.#submit(message, clearance))
    } finally {
      this.#underWay -= 1
    }
  }

  async #submit(message: Message, clearance: Clearance): Promise<Submission> {
    const inTime = await this.#turn(clearance.deadlineMs)
    if (this.#stopped.signal.aborted) return workerStopped
    if (!inTime) return { kind: 'expired' }
    const reused = this.#takeIdle()
    if (reused !== undefined) {
      const submission = await this.#submitOver(reused, message, clearance)
      if (!wasStale(submission)) return submission
    }
    const lifeLeftMs = Math.floor(clearance.deadlineMs - performance.now())
    if (this.#stopped.signal.aborted) return workerStopped
    if (lifeLeftMs <= 0) return { kind: 'expired' }
    const budgetMs = Math.min(this.#breaker.open ? probeOpenMs : openMs, lifeLeftMs)
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(budgetMs)])
    const session = await SmtpSession.open(this.#options.address, signal)
    if (this.#stopped.signal.aborted) return workerStopped
    if (!(session instanceof SmtpSession)) {
      return budgetMs === lifeLeftMs && signal.aborted
        ? { kind: 'expired' }
        : { kind: 'failed', failure: session }
    }
    session.onEnd(() => this.#drop(session))
    return this.#submitOver(session, message, clearance)
  }

  async #submitOver(session: SmtpSession, message: Message, clearance: Clearance): Promise<Submission> {
    this.#busy.add(session)
    const submission = await session.submit(message, clearance)
    this.#busy.delete(session)
    this.#giveBack(session, submission)
    return submission
  }

  /** Waits for this message's place in the relay's pace; false where it comes after the deadline. */
  async #turn(deadlineMs: number): Promise<boolean> {
    const { rate } = this.#options
    if (rate === null) return true
    const now = performance.now()
    const slotMs = Math.max(this.#nextSlotMs, now)
    this.#nextSlotMs = slotMs + 1000 / rate
    const waitMs = Math.ceil(Math.min(slotMs, deadlineMs) - now)
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: this.#stopped.signal }).catch(() => {})
    return slotMs < deadlineMs
  }

  #note(submission: Submission): Submission {
    const wasOpen = this.#breaker.open
    if (submission.kind === 'accepted') this.#breaker.succeeded()
    if (submission.kind === 'failed') this.#noteFailure(submission.failure)
    const { open } = this.#breaker
    if (open !== wasOpen) {
      const reason =
        submission.kind === 'failed' ? (submission.failure.reply ?? submission.failure.fault) : ''
      this.#options.onChange({ relay: this.name, available: !open, reason })
    }
    return submission
  }

  #noteFailure(failure: SmtpFailure): void {
    const verdict = classifyFailure(failure)
    if (verdict.slowDown) this.#breaker.slowDown()
    if (verdict.scope === 'relay') {
      const { code } = parseReply(failure.reply ?? '')
      this.#breaker.failed(code !== null || /ETLS|EAUTH|certificate/i.test(failure.fault))
    } else if (failure.reply !== null) {
      this.#breaker.succeeded() // it answers: the relay itself is well
    }
  }

  #takeIdle(): SmtpSession | undefined {
    const session = this.#idle.pop()
    if (session !== undefined) clearTimeout(this.#idleTimers.get(session))
    return session
  }

  #giveBack(session: SmtpSession, submission: Submission): void {
    // After a refusal the transaction's state differs among servers: begin a new session.
    if (session.closed || submission.kind !== 'accepted') session.close()
    else if (session.messages >= messagesPerSession || this.#stopped.signal.aborted) session.quit()
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

/** The server had ended an idle session before it heard of this message: nothing was attempted. */
const wasStale = (submission: Submission): boolean =>
  submission.kind === 'failed' && submission.failure.stage === 'envelope' && submission.failure.reply === null
