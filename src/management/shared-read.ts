/**
 * One read of a value, shared by concurrent callers: it is read once at a time, and kept for ten times as long as that took. A costly
 * one is kept for longer, so that it delays fewer than one request for an email in a hundred.
 */

const keepFactor = 10
const costlyMs = 20
const costlyFactor = 200

export class SharedRead<T> {
  readonly #read: () => Promise<T>
  readonly #keepMs: number
  readonly #now: () => number
  #last: { readonly value: T; readonly untilMs: number } | null = null
  #reading: Promise<T> | null = null

  /** @param keepMs the least time for which a value is kept */
  constructor(read: () => Promise<T>, keepMs = 0, now = () => performance.now()) {
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
    const tookMs = endedMs - beganMs
    const factor = tookMs > costlyMs ? costlyFactor : keepFactor
    const untilMs = endedMs + Math.max(this.#keepMs, factor * tookMs)
    this.#last = { value, untilMs }
    return value
  }
}
