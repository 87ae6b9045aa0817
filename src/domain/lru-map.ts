/** A bounded map: when it is full, the entry that was used least recently is dropped. */
export class LruMap<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #max: number
  /** Stands before the oldest entry. A new one would first step over all that were deleted lately. */
  #oldest: MapIterator<Key> | null = null
  /** It keeps what the map was since it began, so it is renewed after so many uses. */
  #usesLeft = 0

  constructor(max: number) {
    this.#max = max
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      this.#entries.delete(key)
      this.#put(key, value)
    }
    return value
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#max) {
      this.#oldest ??= this.#entries.keys()
      this.#entries.delete(this.#oldest.next().value as Key)
    }
    this.#put(key, value)
  }

  #put(key: Key, value: Value): void {
    this.#entries.set(key, value)
    this.#usesLeft -= 1
    if (this.#usesLeft > 0) return
    this.#usesLeft = this.#max
    this.#oldest = null
  }
}
