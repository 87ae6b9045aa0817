/**
 * Arrival times of rate-limit buckets in memory: a hash table with open addressing and 16 bytes for each
 * slot, because a `Map` takes several times as much. It grows by doubling, up to a bound. Refilled buckets,
 * whose arrival time has passed, are as good as new ones: they are dropped when the table needs room.
 */

const firstSlots = 1024
/** The share of slots that may be taken, so that a search stays short. */
const loadMax = 0.75
/** Dropping refilled buckets reads the whole table, so a full one is not searched for them at each call. */
const dropEveryUs = 1e6

export class ArrivalTable {
  /** Fingerprints; 0 for an empty slot. */
  #keys = new Float64Array(firstSlots)
  #arrivals = new Float64Array(firstSlots)
  #size = 0
  #droppedAtUs = 0

  /** The arrival time of a bucket in microseconds, 0 for one that is not in the table. */
  get(key: number): number {
    return this.#arrivals[this.#slotOf(key)] ?? 0
  }

  /** Call `makeRoom` before. */
  set(key: number, arrivalUs: number): void {
    const slot = this.#slotOf(key)
    if (this.#keys[slot] === 0) this.#size += 1
    this.#keys[slot] = key
    this.#arrivals[slot] = arrivalUs
  }

  /**
   * Whether `count` more buckets fit: if necessary without those that have refilled at `nowUs`, and in a
   * larger table of at most `slotsMax` slots (a power of two).
   */
  makeRoom(count: number, nowUs: number, slotsMax: number): boolean {
    if (this.#fits(count)) return true
    if (this.#keys.length >= slotsMax && Math.abs(nowUs - this.#droppedAtUs) < dropEveryUs) return false
    this.#droppedAtUs = nowUs
    this.#rebuild(this.#keys.length, nowUs)
    // Half full at most afterwards, so that it is not rebuilt again soon.
    while (2 * (this.#size + count) > this.#keys.length * loadMax && this.#keys.length < slotsMax)
      this.#rebuild(this.#keys.length * 2, nowUs)
    return this.#fits(count)
  }

  #fits(count: number): boolean {
    return this.#size + count <= this.#keys.length * loadMax
  }

  #rebuild(slots: number, nowUs: number): void {
    const [keys, arrivals] = [this.#keys, this.#arrivals]
    this.#keys = new Float64Array(slots)
    this.#arrivals = new Float64Array(slots)
    this.#size = 0
    for (const [slot, key] of keys.entries()) {
      const arrivalUs = arrivals[slot] ?? 0
      if (key !== 0 && arrivalUs > nowUs) this.set(key, arrivalUs)
    }
  }

  /** The slot of a key, or the empty one where it belongs. */
  #slotOf(key: number): number {
    const mask = this.#keys.length - 1
    let slot = key & mask
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & mask
    return slot
  }
}
