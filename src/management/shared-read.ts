/** One read of a value, shared by concurrent callers: it is read once at a time, and kept for a while. */
import { minuteMs } from '../domain/duration.ts'

export class SharedRead<T> {
  readonly #read: () => Promise<T>
  readonly #keepMs: (tookMs: number) => number
  readonly #now: () => number
  #last: { readonly value: T; readonly untilMs: number } | null = null
  #reading: Promise<T> | null = null

  /** @param keepMs for how long a value is kept that took `tookMs` to read */
  constructor(read: () => Promise<T>, keepMs: (tookMs: number) => number, now = () => performance.now()) {
    this.#read = read
    this.#keepMs = keepMs
    this.#now = now
  }

  async get(): Promise<T> {
    if (this.#last !== null && this.#now() < this.#last.untilMs) return this.#last.value
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #readNow(): Promise<T> {
    const beganMs = this.#now()
    const value = await this.#read()
    const endedMs = this.#now()
    this.#last = { value, untilMs: endedMs + this.#keepMs(endedMs - beganMs) }
    return value
  }
}

const costlyMs = 20

/**
 * Counting costs more the deeper the queue is, and the more apps send. A costly count is kept so long that it
 * delays fewer than one request for an email in a hundred, but no longer than a minute.
 */
export const keepCountsMs = (tookMs: number): number =>
  Math.min(minuteMs, tookMs > costlyMs ? 200 * tookMs : 10 * tookMs)
