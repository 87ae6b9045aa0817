/**
 * A relay as one process sees it: whether it takes mail, since when, and why not. An outage begins with the
 * first attempt that failed after the last email that the relay accepted, and is over once it accepts one: a
 * relay that can be connected to for a moment has not ended it. While it lasts, its reason is the reply that
 * came most often in the last half minute; once it is over, that of the whole of it.
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
/** A relay that refused and is now stopped has another reason. */
const recentMs = minuteMs / 2
/** The last times of a reply; so many in half a minute are many. */
const timesMax = 20

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
  readonly #replies = new Map<
    string,
    { readonly text: string; readonly count: number; readonly at: readonly number[] }
  >()
  /** The outage before the last one, while no email has shown that the last one is over. */
  #before: { readonly outage: RelayState['lastOutage'] } | null = null

  /** @param startedAt when the process started, in milliseconds since 1970 */
  constructor(relay: MeasuredRelay, startedAt: number) {
    this.#relay = relay
    this.#since = startedAt
  }

  isOf = (relay: MeasuredRelay): boolean => relay === this.#relay

  get isTried(): boolean {
    return this.#tried
  }

  /** The relay became unavailable, or available again. */
  changed({ available, reason }: { readonly available: boolean; readonly reason: string }, at: number): void {
    this.#tried = true
    if (available) {
      if (this.#isDown) this.#end(at)
      this.#since = at
      this.#forget()
    } else {
      const from = this.#resume(at)
      this.#failed(reason, at)
      this.#since = from ?? this.#failedAt ?? at
    }
    this.#isDown = !available
  }

  /** An attempt at this relay has ended. */
  attempted(outcome: DeliveryOutcome, at: number): void {
    this.#tried = true
    if (outcome.kind === 'delivered') {
      if (this.#isDown) return
      this.#before = null
      this.#forget()
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
      reason: this.#isDown ? this.#findReason(this.#lastFailedAt - recentMs) : '',
      connections: this.#relay.connections(),
      lastOutage: this.#lastOutage,
    }
  }

  #end(at: number): void {
    this.#before = { outage: this.#lastOutage }
    this.#lastOutage = { from: this.#since, until: at, reason: this.#findReason() }
  }

  /** When the last outage began, if it goes on: no email was accepted since, and not much time has passed. */
  #resume(at: number): number | null {
    if (this.#before === null || this.#lastOutage === null || at - this.#lastOutage.until > quietMs) return null
    const { from } = this.#lastOutage
    this.#lastOutage = this.#before.outage
    this.#before = null
    return from
  }

  #forget(): void {
    this.#failedAt = null
    this.#replies.clear()
  }

  #failed(reply: string, at: number): void {
    if (!this.#isDown && at - this.#lastFailedAt > quietMs) this.#forget()
    this.#lastFailedAt = at
    this.#failedAt ??= at
    const kind = kindOfReply(reply)
    const known = this.#replies.get(kind) ?? { text: reply, count: 0, at: [] }
    if (known.count === 0 && this.#replies.size >= repliesMax) return
    this.#replies.set(kind, { ...known, count: known.count + 1, at: [...known.at, at].slice(-timesMax) })
  }

  /** Since then; the first of those that came equally often. */
  #findReason(since = Number.NEGATIVE_INFINITY): string {
    const isAll = since === Number.NEGATIVE_INFINITY
    const counted = [...this.#replies.values()].map(({ at, count, text }) => ({
      text,
      count: isAll ? count : at.filter((time) => time >= since).length,
    }))
    const [most] = counted.toSorted((a, b) => b.count - a.count)
    return most?.text ?? ''
  }
}
