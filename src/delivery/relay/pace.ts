/**
 * The pace that a relay shows. Once it has refused emails because too many came, it gets as many in a second
 * as it took in the second before. After ten seconds without such a refusal the pace rises by a tenth each
 * second, until it no longer matters. If the relay had taken few, that is no measure: the pace is then halved
 * at most, and soon doubles. One refusal alone may be about one sender's limit, so two in a row count.
 */

const windowMs = 1_000
const inRowMin = 2
/** Fewer emails in a second are no measure. */
const measureMin = 5
const measured = { holdMs: 10_000, growth: 1.1 }
const guessed = { holdMs: 2_000, growth: 2 }
/** No longer a bound: no relay gets so many in a second. */
const unboundedRate = 1_000
const guessedRate = 5
/** Below what was taken, since the relay's second does not begin with ours. */
const share = 0.95

export class Pace {
  /** When the newest emails were accepted, in milliseconds: a ring. */
  readonly #accepted = new Float64Array(unboundedRate).fill(Number.NEGATIVE_INFINITY)
  #next = 0
  #inRow = 0
  /** Emails a second when the relay last refused some. */
  #refusedRate: number | null = null
  #refusedAtMs = Number.NEGATIVE_INFINITY
  #recovery = measured

  accepted(nowMs: number): void {
    this.#inRow = 0
    this.#accepted[this.#next] = nowMs
    this.#next = (this.#next + 1) % unboundedRate
  }

  /**
   * Too many came. Emails on their way get the same reply, so that they count once in a second.
   * @returns when the next email may leave, a second after the first of those that were taken; null for now
   */
  refused(nowMs: number): number | null {
    this.#inRow += 1
    if (this.#inRow < inRowMin) return null
    const lately = this.#accepted.filter((at) => nowMs - at < windowMs)
    const nextMs = Math.min(nowMs, ...lately) + windowMs
    if (nowMs - this.#refusedAtMs < windowMs) return nextMs
    const taken = lately.length
    const rate = this.rate(nowMs)
    this.#recovery = taken >= measureMin ? measured : guessed
    this.#refusedRate = taken >= measureMin ? taken * share : Math.max(rate === null ? guessedRate : rate / 2, taken, 1)
    this.#refusedAtMs = nowMs
    return nextMs
  }

  /** Emails a second; null for no bound. */
  rate(nowMs: number): number | null {
    if (this.#refusedRate === null) return null
    const { growth, holdMs } = this.#recovery
    const growsForMs = Math.max(0, nowMs - this.#refusedAtMs - holdMs)
    const rate = this.#refusedRate * growth ** (growsForMs / 1000)
    if (rate >= unboundedRate) this.#refusedRate = null
    return this.#refusedRate === null ? null : rate
  }
}
