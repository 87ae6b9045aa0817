/**
 * A relay: a client that speaks its protocol, behind a gate that bounds messages in progress and a second,
 * and holds the breaker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FailureClass } from '../../domain/delivery/reply.ts'
import type { EmailId } from '../../domain/id.ts'
import { Breaker } from './breaker.ts'
import { Pace } from './pace.ts'
import { RefusedEmails } from './refused-emails.ts'
import { type Clearance, type Message, type Relay, type Submission, workerStopped } from './relay.ts'

/** Speaks the protocol of one relay. */
export type RelayClient = {
  readonly name: string
  /** @param openMs the time for a token, connecting, TLS and the login together */
  send(message: Message, clearance: Clearance, openMs: number): Promise<Submission>
  connections(): { readonly connecting: number; readonly open: number; readonly busy: number }
  /** Aborts what is in progress and ends the connections. */
  close(): void
}

export type GateOptions = {
  readonly connectionsMax: number
  readonly takesReserved: boolean
  readonly certificateExpiresAt: number | null
  /** Messages a second; null for no bound. */
  readonly rate: number | null
  readonly random: () => number
  /** The relay became unavailable, or available again. */
  readonly onChange: (change: { relay: string; available: boolean; reason: string }) => void
}

/** More of them tell no more. */
const unansweredMax = 100
const usualOpenMs = 60_000
/** A probe that hangs delays one email, so it gets less time. */
const probeOpenMs = 5_000
/**
 * A relay whose connections are all busy, and that has finished nothing for so long, is stuck: as long as the
 * breaker waits before it doubts a relay.
 */
const stuckMs = 10_000

export class GatedRelay implements Relay {
  readonly name: string
  readonly takesReserved: boolean
  readonly certificateExpiresAt: number | null
  readonly #client: RelayClient
  readonly #options: GateOptions
  readonly #breaker: Breaker
  readonly #stopped = new AbortController()
  readonly #pace = new Pace()
  readonly #refused = new RefusedEmails()
  /** Emails that got no answer since the relay last accepted one. */
  readonly #unanswered = new Set<EmailId>()
  #inProgress = 0
  /** The ones that began while the breaker was open. */
  #probing = 0
  /** When the client began or ended a submission last. */
  #movedAtMs = 0
  #nextSendMs = 0

  constructor(client: RelayClient, options: GateOptions) {
    this.name = client.name
    this.takesReserved = options.takesReserved
    this.certificateExpiresAt = options.certificateExpiresAt
    this.#client = client
    this.#options = options
    const now = () => performance.now()
    this.#breaker = new Breaker({ connectionsMax: options.connectionsMax, now, random: options.random })
  }

  isAvailable = (): boolean => !this.#breaker.open && !this.#breaker.refuses
  isLast = (): boolean => this.#breaker.isLast() || this.#isPaced()
  capacity = (): number => this.#breaker.capacity()
  inProgress = (): number => this.#inProgress
  free = (): number => this.#breaker.capacity() - (this.#breaker.open ? this.#probing : this.#inProgress)
  isStuck = (): boolean => {
    const now = performance.now()
    const waitsForRate = this.#nextSendMs > now
    return this.#inProgress > 0 && this.free() <= 0 && !waitsForRate && now - this.#movedAtMs > stuckMs
  }
  probeInMs = (): number => this.#breaker.probeInMs()
  connections = () => ({
    ...this.#client.connections(),
    allowed: this.#breaker.capacity(),
    max: this.#options.connectionsMax,
  })

  async submit(message: Message, clearance: Clearance): Promise<Submission> {
    const probing = this.#breaker.open ? 1 : 0
    this.#inProgress += 1
    this.#probing += probing
    try {
      const submission = await this.#send(message, clearance)
      this.#note(submission, message.id)
      const isUnclear = submission.kind === 'failed' && submission.failureClass.scope === 'unclear'
      if (!isUnclear || !submission.failureClass.permanent) return submission
      const takesOthers = this.#refused.refused(message.id, performance.now())
      return { ...submission, takesOthers }
    } finally {
      this.#inProgress -= 1
      this.#probing -= probing
      this.#movedAtMs = performance.now()
    }
  }

  async #send(message: Message, clearance: Clearance): Promise<Submission> {
    const inTime = await this.#waitForRate(clearance.deadlineMs)
    if (this.#stopped.signal.aborted) return workerStopped
    if (!inTime) return { kind: 'expired' }
    this.#movedAtMs = performance.now()
    return this.#client.send(message, clearance, this.#breaker.open ? probeOpenMs : usualOpenMs)
  }

  /** Whether an email would wait, because the relay asked for fewer a second. */
  #isPaced(): boolean {
    const now = performance.now()
    return this.#nextSendMs > now && this.#pace.rate(now) !== null
  }

  /** Waits until the rate allows this message. False if that is after the deadline. */
  async #waitForRate(deadlineMs: number): Promise<boolean> {
    const now = performance.now()
    const rate = least(this.#options.rate, this.#pace.rate(now))
    if (rate === null) return true
    const sendMs = Math.max(this.#nextSendMs, now)
    // A message that cannot be sent in time takes no turn: it would leave the relay idle, and others waiting.
    if (sendMs < deadlineMs) this.#nextSendMs = sendMs + 1000 / rate
    const waitMs = Math.ceil(Math.min(sendMs, deadlineMs) - now)
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: this.#stopped.signal }).catch(() => {})
    return sendMs < deadlineMs
  }

  #note(submission: Submission, id: EmailId): void {
    const wasAvailable = this.isAvailable()
    if (submission.kind === 'accepted') {
      const now = performance.now()
      this.#refused.accepted(now)
      this.#unanswered.clear()
      this.#pace.accepted(now)
      this.#breaker.succeeded()
    }
    if (submission.kind === 'failed') {
      const isKnown = submission.failureClass.ambiguous && !this.#isNewUnanswered(id)
      if (!isKnown) this.#noteFailure(submission.failureClass, submission.reply.code)
    }
    const available = this.isAvailable()
    if (available !== wasAvailable) {
      const reason = submission.kind === 'failed' ? submission.reply.text : ''
      this.#options.onChange({ relay: this.name, available, reason })
    }
  }

  /** One email that gets no answer again and again says nothing about the relay. */
  #isNewUnanswered(id: EmailId): boolean {
    if (this.#unanswered.has(id)) return false
    if (this.#unanswered.size < unansweredMax) this.#unanswered.add(id)
    return true
  }

  #noteFailure({ scope, lasting, retryAfterMs, slowDown, ambiguous }: FailureClass, code: number | null): void {
    const answered = code !== null
    const { open } = this.#client.connections()
    // A relay that refuses one connection and serves others has reached its limit of connections.
    if (!this.#breaker.open && scope === 'relay' && answered && !lasting && retryAfterMs === null && open > 0) {
      this.#breaker.limitTo(open)
      return
    }
    if (slowDown !== null) this.#slowDown(slowDown)
    if (scope === 'relay') this.#breaker.failed({ lasting, answered, retryAfterMs })
    else if (scope === 'unclear' || ambiguous) this.#breaker.refused({ works: answered && code !== 421 })
    else if (answered) this.#breaker.answered()
  }

  /** With one connection left, only fewer emails a second can help. */
  #slowDown(by: NonNullable<FailureClass['slowDown']>): void {
    if (by === 'connections' && this.#breaker.capacity() > 1) this.#breaker.slowDown()
    else this.#nextSendMs = Math.max(this.#nextSendMs, this.#pace.refused(performance.now()) ?? 0)
  }

  close(): void {
    this.#stopped.abort()
    this.#client.close()
  }
}

const least = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b)
