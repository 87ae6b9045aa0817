/**
 * Keeps a relay that is down from being asked by every email. Closed: all may pass. After three
 * failures of the relay in a row, or one refusal of our credentials, it opens and holds for 1 s,
 * doubling to 30 s, ±20 %; then one probe passes, and its result closes or opens it again.
 * Beside it stands the number of connections: halved when the relay asks to slow down, and given
 * back one by one.
 */

const failuresToOpen = 3
const holdMinMs = 1_000
const holdMaxMs = 30_000
const successesToGrow = 20

export class Breaker {
  readonly #connectionsMax: number
  readonly #now: () => number
  readonly #random: () => number
  #connections: number
  #failures = 0
  #successes = 0
  #holdMs = 0
  #opensAt = 0

  /** `now` in milliseconds, monotonic. */
  constructor(options: { connectionsMax: number; now: () => number; random: () => number }) {
    this.#connectionsMax = options.connectionsMax
    this.#connections = options.connectionsMax
    this.#now = options.now
    this.#random = options.random
  }

  get open(): boolean {
    return this.#holdMs > 0
  }

  /** How many may be under way: 0 while open, 1 for the probe. */
  capacity(): number {
    if (!this.open) return this.#connections
    return this.probeInMs() > 0 ? 0 : 1
  }

  probeInMs(): number {
    return this.open ? Math.max(0, this.#opensAt - this.#now()) : 0
  }

  succeeded(): void {
    this.#failures = 0
    this.#holdMs = 0
    this.#successes += 1
    if (this.#successes % successesToGrow === 0 && this.#connections < this.#connectionsMax)
      this.#connections += 1
  }

  /** The relay as a whole failed; `atOnce` where more tries can only do harm. */
  failed(atOnce: boolean): void {
    this.#failures += 1
    if (!this.open && !atOnce && this.#failures < failuresToOpen) return
    if (this.probeInMs() > 0) return // failures that were under way when it opened
    this.#holdMs = Math.min(Math.max(this.#holdMs * 2, holdMinMs), holdMaxMs)
    this.#opensAt = this.#now() + this.#holdMs * (0.8 + 0.4 * this.#random())
  }

  slowDown(): void {
    this.#connections = Math.max(1, Math.floor(this.#connections / 2))
    this.#successes = 0
  }
}
