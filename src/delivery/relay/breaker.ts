/**
 * A circuit breaker for one relay, so that a relay which is down is not asked by every email. It
 * opens after three failures of the relay in a row; and after one that lasts (refused credentials, a bad
 * certificate) or has no answer, if the relay has taken nothing for ten seconds: the next two may take
 * minutes. While it is open nothing passes for 1 s, doubling to 10 s,
 * ±20 %; then one probe passes, and its result closes the breaker or opens it again.
 *
 * A relay `refuses` after three unclear refusals (`FailureClass`) since it last accepted an email, and ten
 * seconds without a sign that it works: the others come first, but nothing is held back. A tenant whose
 * sender or recipients it refuses delays nobody else.
 *
 * The breaker also holds the number of connections: halved when the relay asks to slow down, and raised again
 * one by one.
 */

const failuresToOpen = 3
const refusalsToDoubt = 3
const pauseMinMs = 1_000
const pauseMaxMs = 10_000
const quietMs = 10_000
const successesToGrow = 20
/** A relay that refuses is asked before the others again after so long, until it refuses once more. */
const refusedPauseMs = 5_000

type RelayFailure = {
  readonly lasting: boolean
  readonly answered: boolean
  readonly retryAfterMs?: number | null
}

export class Breaker {
  readonly #connectionsMax: number
  readonly #now: () => number
  readonly #random: () => number
  #connections: number
  #failures = 0
  #successes = 0
  #workedAtMs = Number.NEGATIVE_INFINITY
  /** Since it last accepted an email. */
  #refusals = 0
  #firstAgainAtMs = 0
  #refuses = false
  /** 0 while the breaker is closed. */
  #pauseMs = 0
  #probeAtMs = 0

  /** `now` in milliseconds, monotonic. */
  constructor(options: { connectionsMax: number; now: () => number; random: () => number }) {
    this.#connectionsMax = options.connectionsMax
    this.#connections = options.connectionsMax
    this.#now = options.now
    this.#random = options.random
  }

  get open(): boolean {
    return this.#pauseMs > 0
  }

  get refuses(): boolean {
    return this.#refuses
  }

  /** Whether the other relays come first. */
  isLast(): boolean {
    return this.#refuses && this.#now() < this.#firstAgainAtMs
  }

  /** How many submissions may be in progress: none while open, one for the probe. */
  capacity(): number {
    if (!this.open) return this.#connections
    return this.probeInMs() > 0 ? 0 : 1
  }

  /** Milliseconds until the next probe may pass; 0 while closed. */
  probeInMs(): number {
    return this.open ? Math.max(0, this.#probeAtMs - this.#now()) : 0
  }

  /** The relay accepted an email. */
  succeeded(): void {
    this.answered()
    this.#refusals = 0
    this.#refuses = false
    this.#successes += 1
    if (this.#successes % successesToGrow === 0 && this.#connections < this.#connectionsMax) this.#connections += 1
  }

  /** The relay works: it accepted an email, or refused one because of its recipient. */
  answered(): void {
    this.#workedAtMs = this.#now()
    this.#close()
  }

  /** An unclear refusal. `works`: the relay takes commands, and does not end the connection. */
  refused({ works }: { readonly works: boolean }): void {
    if (works) this.#close()
    this.#refusals += 1
    if (this.#refusals < refusalsToDoubt || !this.#isQuiet()) return
    this.#refuses = true
    this.#firstAgainAtMs = this.#now() + refusedPauseMs
  }

  #isQuiet = (): boolean => this.#now() - this.#workedAtMs >= quietMs

  #close(): void {
    this.#failures = 0
    this.#pauseMs = 0
  }

  /**
   * The relay as a whole failed. `lasting`: another attempt at once cannot succeed. `answered`: it sent a
   * reply. `retryAfterMs`: it asks to be left alone for so long.
   */
  failed({ lasting, answered, retryAfterMs = null }: RelayFailure): void {
    this.#failures += 1
    if (retryAfterMs !== null) {
      this.#pause(Math.max(retryAfterMs, pauseMinMs), 1)
      return
    }
    // A refusal of one sender or recipient looks like one of the account, but other mail is taken.
    const isClear = this.#isQuiet() && (lasting || !answered)
    if (!this.open && !isClear && this.#failures < failuresToOpen) return
    if (this.probeInMs() > 0) return // it was in progress when the breaker opened
    const pauseMs = Math.min(Math.max(this.#pauseMs * 2, pauseMinMs), pauseMaxMs)
    this.#pause(pauseMs, 0.8 + 0.4 * this.#random())
  }

  #pause(pauseMs: number, share: number): void {
    this.#pauseMs = pauseMs
    this.#probeAtMs = Math.max(this.#probeAtMs, this.#now() + pauseMs * share)
  }

  /** The relay asks for fewer connections. */
  slowDown(): void {
    this.limitTo(Math.floor(this.#connections / 2))
  }

  /** The relay accepts no more than this many connections now. */
  limitTo(connections: number): void {
    this.#connections = Math.max(1, Math.min(this.#connections, connections))
    this.#successes = 0
  }
}
