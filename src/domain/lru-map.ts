/**
 * A bounded map. It holds the `kept` entries that were used last, and at most twice as many. Two maps take
 * turns: once the newer one is full, the older one is dropped as a whole.
 */
export class LruMap<Key, Value> {
  readonly #kept: number
  #newer = new Map<Key, Value>()
  #older = new Map<Key, Value>()

  constructor(kept: number) {
    this.#kept = kept
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
    if (this.#newer.size < this.#kept) return
    this.#older = this.#newer
    this.#newer = new Map()
  }
}
