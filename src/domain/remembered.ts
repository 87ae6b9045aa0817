/** Values that are read once for all who ask at the same time, and remembered for a while. */
import { minuteMs } from './duration.ts'
import { LruMap } from './lru-map.ts'

type Entry<Value> = { readonly value: Value; readonly beganMs: number; readonly untilMs: number }

type Options<Value> = {
  /** For how long a value is remembered that took `tookMs` to read. */
  readonly keepMs: (tookMs: number) => number
  /** How many values are remembered. */
  readonly max: number
  /** Whether a value is kept apart, so that values of this kind push out no others. */
  readonly isApart?: (value: Value) => boolean
  /** A monotonic clock. */
  readonly now?: () => number
}

/** By name. A read that fails is not remembered. */
export class Remembered<Value> {
  readonly #options: Options<Value>
  readonly #now: () => number
  readonly #known: LruMap<string, Entry<Value>>
  readonly #apart: LruMap<string, Entry<Value>>
  readonly #reading = new Map<string, Promise<Value>>()

  constructor(options: Options<Value>) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#known = new LruMap(options.max)
    this.#apart = new LruMap(options.max)
  }

  /** @param youngerThanMs the value is read again if its last read began longer ago */
  async get(name: string, read: () => Promise<Value>, youngerThanMs = Number.POSITIVE_INFINITY): Promise<Value> {
    const known = this.#known.get(name) ?? this.#apart.get(name)
    const nowMs = this.#now()
    if (known !== undefined && nowMs < known.untilMs && nowMs - known.beganMs < youngerThanMs) return known.value
    const reading = this.#reading.get(name) ?? this.#read(name, read)
    this.#reading.set(name, reading)
    return reading
  }

  async #read(name: string, read: () => Promise<Value>): Promise<Value> {
    const beganMs = this.#now()
    try {
      const value = await read()
      const endedMs = this.#now()
      const { isApart = () => false, keepMs } = this.#options
      this.forget(name)
      const kept = isApart(value) ? this.#apart : this.#known
      kept.set(name, { value, beganMs, untilMs: endedMs + keepMs(endedMs - beganMs) })
      return value
    } finally {
      this.#reading.delete(name)
    }
  }

  /** The value of the last read, if it is still remembered. */
  peek(name: string): Value | undefined {
    const known = this.#known.get(name) ?? this.#apart.get(name)
    return known !== undefined && this.#now() < known.untilMs ? known.value : undefined
  }

  /** The value of the last read, however old it is. */
  last(name: string): Value | undefined {
    return (this.#known.get(name) ?? this.#apart.get(name))?.value
  }

  forget(name: string): void {
    this.#known.delete(name)
    this.#apart.delete(name)
  }
}

/** The same for one value. */
export class SharedRead<Value> {
  readonly #read: () => Promise<Value>
  readonly #remembered: Remembered<Value>

  constructor(read: () => Promise<Value>, keepMs: (tookMs: number) => number, now?: () => number) {
    this.#read = read
    this.#remembered = new Remembered({ keepMs, max: 1, ...(now && { now }) })
  }

  get(): Promise<Value> {
    return this.#remembered.get('', this.#read)
  }
}

const costlyMs = 20

/**
 * Counting costs more the deeper the queue is, and the more apps send. A costly count is kept so long that it
 * delays fewer than one request for an email in a hundred, but no longer than a minute.
 */
export const keepCountsMs = (tookMs: number): number =>
  Math.min(minuteMs, tookMs > costlyMs ? 200 * tookMs : 10 * tookMs)
