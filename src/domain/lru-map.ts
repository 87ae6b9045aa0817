/**
 * A bounded map. It holds the `max / 2` entries that were used last, and at most `max`. Two maps take turns:
 * once the newer one is half of `max`, the older one is dropped as a whole. That costs less than an order of
 * use.
 */
export class LruMap<Key, Value> {
  readonly #newerMax: number
  #newer = new Map<Key, Value>()
  #older = new Map<Key, Value>()

  /** `max` is 2 or more. */
  constructor(max: number) {
    this.#newerMax = Math.floor(max / 2)
  }

  get(key: Key): Value | undefined {
    const newer = this.#newer.get(key)
    if (newer !== undefined) return newer
    const older = this.#older.get(key)
    if (older !== undefined) this.set(key, older)
    return older
  }

  delete(key: Key): void {
    this.#newer.delete(key)
    this.#older.delete(key)
  }

  set(key: Key, value: Value): void {
    this.#newer.set(key, value)
    if (this.#newer.size < this.#newerMax) return
    this.#older = this.#newer
    this.#newer = new Map()
  }
}
