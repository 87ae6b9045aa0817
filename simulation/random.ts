/** Random numbers that a seed decides. Each part of a simulation has a sequence of its own, by name. */
import { createHash } from 'node:crypto'

export class Random {
  #state: Uint32Array

  constructor(seed: number, name: string) {
    const digest = createHash('sha256').update(`${seed} ${name}`).digest()
    this.#state = Uint32Array.from({ length: 4 }, (_, index) => digest.readUInt32LE(index * 4))
  }

  /** 32 bits, by sfc32 (Chris Doty-Humphrey, PractRand). */
  bits(): number {
    const [a = 0, b = 0, c = 0, counter = 0] = this.#state
    const result = (a + b + counter) >>> 0
    this.#state[0] = b ^ (b >>> 9)
    this.#state[1] = c + (c << 3)
    this.#state[2] = ((c << 21) | (c >>> 11)) + result
    this.#state[3] = counter + 1
    return result
  }

  /** At least 0 and below 1. */
  next = (): number => this.bits() / 2 ** 32

  /** At least `low` and below `high`. */
  between = (low: number, high: number): number => low + this.next() * (high - low)

  /** A whole number below `end`. */
  below = (end: number): number => Math.floor(this.next() * end)

  chance = (probability: number): boolean => this.next() < probability

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T
  }

  /** A duration: most are near `low`, few near `high`. */
  skewed = (low: number, high: number): number => low * (high / low) ** this.next()

  fill(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index++) bytes[index] = this.bits() & 0xff
  }
}
