/**
 * The pace that a relay shows. Once it has refused an email because too many came, it gets as many in a
 * second as it took in the second before. After ten seconds without such a refusal the pace rises by a tenth
 * each second, until it no longer matters.
 */

const windowMs = 1_000
const holdMs = 10_000
const growth = 1.1
/** No longer a bound: no relay gets so many in a second. */
const unboundedRate = 1_000
/** A first refusal may have come before the relay had taken what it can. */
const firstRateMin = 5
/** Below what was taken, since the relay's second does not begin with ours. */
const share = 0.95

export class Pace {
  /** When emails were accepted in the last second, in milliseconds. */
  readonly #accepted: number[] = []
  /** Emails a second when the relay last refused one. */
  #refusedRate: number | null = null
  #refusedAtMs = Number.NEGATIVE_INFINITY

  accepted(nowMs: number): void {
    this.#forget(nowMs)
    this.#accepted.push(nowMs)
  }

  /**
   * Too many came. Emails on their way get the same reply, so that one refusal counts in a second.
   * @returns when the next email may leave: a second after the first of those that were taken
   */
  refused(nowMs: number): number {
    this.#forget(nowMs)
    const nextMs = (this.#accepted[0] ?? nowMs) + windowMs
    if (nowMs - this.#refusedAtMs < windowMs) return nextMs
    const min = this.rate(nowMs) === null ? firstRateMin : 1
    this.#refusedRate = Math.max(this.#accepted.length * share, min)
    this.#refusedAtMs = nowMs
    return nextMs
  }

  /** Emails a second; null for no bound. */
  rate(nowMs: number): number | null {
    if (this.#refusedRate === null) return null
    const growsForMs = Math.max(0, nowMs - this.#refusedAtMs - holdMs)
    const rate = this.#refusedRate * growth ** (growsForMs / 1000)
    if (rate >= unboundedRate) this.#refusedRate = null
    return this.#refusedRate === null ? null : rate
  }

  #forget(nowMs: number): void {
    const kept = this.#accepted.findIndex((at) => nowMs - at < windowMs)
    this.#accepted.splice(0, kept === -1 ? this.#accepted.length : kept)
  }
}
