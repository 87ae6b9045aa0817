/**
 * A relay as one process sees it: whether it takes mail, since when, and why not. An outage begins with the
 * first attempt that failed after the last email that the relay accepted, and its reason is the reply that
 * came most often since.
 */
import { isAboutRecipient } from '../domain/delivery/blame.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { MeasuredRelay, RelayState } from '../domain/delivery/relay-state.ts'
import { kindOfReply } from '../domain/delivery/smtp-reply.ts'
import { minuteMs } from '../domain/duration.ts'

/** Attempts that failed longer ago, before a quiet time, are not part of an outage that begins now. */
const quietMs = 5 * minuteMs
/** Different replies of an outage that are counted. */
const repliesMax = 50

export class RelayHealth {
  readonly #relay: MeasuredRelay
  #since: number
  #lastOutage: RelayState['lastOutage'] = null
  #isDown = false
  #tried = false
  /** When the first attempt failed since the relay last accepted an email; null if none has. */
  #failedAt: number | null = null
  #lastFailedAt = 0
  /** Since then, by kind. */
  readonly #replies = new Map<string, { readonly text: string; count: number }>()

  /** @param startedAt when the process started, in milliseconds since 1970 */
  constructor(relay: MeasuredRelay, startedAt: number) {
    this.#relay = relay
    this.#since = startedAt
  }

  get isTried(): boolean {
    return this.#tried
  }

  /** The relay became unavailable, or available again. */
  changed({ available, reason }: { readonly available: boolean; readonly reason: string }, at: number): void {
    this.#tried = true
    if (available) {
      if (this.#isDown) this.#lastOutage = { from: this.#since, until: at, reason: this.#findReason() }
      this.#since = at
      this.#forget()
    } else {
      this.#failed(reason, at)
      this.#since = this.#failedAt ?? at
    }
    this.#isDown = !available
  }

  /** An attempt at this relay has ended. */
  attempted(outcome: DeliveryOutcome, at: number): void {
    this.#tried = true
    if (outcome.kind === 'delivered') {
      if (!this.#isDown) this.#forget()
    } else if (outcome.kind === 'unattempted') this.#failed(outcome.reply.text, at)
    else if (outcome.kind === 'deferred') {
      const { reply } = outcome
      if (!isAboutRecipient({ stage: 'handed-over', reply, isRefused: false })) this.#failed(reply.text, at)
    }
  }

  state(): RelayState {
    const available = this.#relay.isAvailable()
    return {
      name: this.#relay.name,
      certificateExpiresAt: this.#relay.certificateExpiresAt,
      available,
      tried: this.#tried,
      since: this.#since,
      reason: this.#isDown ? this.#findReason() : '',
      connections: this.#relay.connections(),
      lastOutage: this.#lastOutage,
    }
  }

  #forget(): void {
    this.#failedAt = null
    this.#replies.clear()
  }

  #failed(reply: string, at: number): void {
    if (!this.#isDown && at - this.#lastFailedAt > quietMs) this.#forget()
    this.#lastFailedAt = at
    this.#failedAt ??= at
    const known = this.#replies.get(kindOfReply(reply))
    if (known !== undefined) known.count += 1
    else if (this.#replies.size < repliesMax) this.#replies.set(kindOfReply(reply), { text: reply, count: 1 })
  }

  /** The first of those that came equally often. */
  #findReason(): string {
    const [most] = [...this.#replies.values()].toSorted((a, b) => b.count - a.count)
    return most?.text ?? ''
  }
}
