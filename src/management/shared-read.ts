/**
 * One read of a costly value, shared by concurrent callers: the value is kept for fifty times as long as it took to read, so that
 * reading takes a fiftieth of the time at most, and it is read once at a time.
 */

const keepFactor = 50

export class SharedRead<T> {
  readonly #read: () => Promise<T>
  readonly #keepMs: number
  #last: { readonly value: T; readonly untilMs: number } | null = null
  #reading: Promise<T> | null = null

  /** @param keepMs the least time for which a value is kept */
  constructor(read: () => Promise<T>, keepMs = 0) {
    this.#read = read
    this.#keepMs = keepMs
  }

  async get(): Promise<T> {
    if (this.#last !== null && performance.now() < this.#last.untilMs) return this.#last.value
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #readNow(): Promise<T> {
    const beganMs = performance.now()
    const value = await this.#read()
    const endedMs = performance.now()
    const untilMs = endedMs + Math.max(this.#keepMs, keepFactor * (endedMs - beganMs))
    this.#last = { value, untilMs }
    return value
  }
}
