/** A bounded map: when it is full, the entry that was used least recently is dropped. */
export class LruMap<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    const oldest = this.#entries.keys().next().value
    if (this.#entries.size >= this.#max && oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(key, value)
  }
}
