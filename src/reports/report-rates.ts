/**
 * Keeps the reading of reports to a rate: anybody may send mail to the bounce address, and to read it takes
 * the processor from requests for emails. Bytes are charged as they come, for all clients together and for
 * each network of a client its share (`listShares`); a new message has to wait until they are paid.
 */
import { listShares } from '../domain/client-network.ts'
import { LruMap } from '../domain/lru-map.ts'

/** For all together. Reports have some 5 KB: these are 800 a second. */
const bytesPerMs = 4 * 1024
/** Milliseconds of the rate that may be used at once. */
const burstMs = 4000
/** A piece of a message costs as much as this many bytes more. */
const pieceBytes = 512
const bucketsKept = 10_000

export class ReportRates {
  readonly #isProxy: (address: string) => boolean
  readonly #now: () => number
  /** When the bytes of each network are paid, in milliseconds. */
  readonly #paidAt = new LruMap<string, number>(bucketsKept)

  /** @param isProxy whether an address may be that of a proxy, which counts only for all together */
  constructor(isProxy: (address: string) => boolean, now: () => number = () => performance.now()) {
    this.#isProxy = isProxy
    this.#now = now
  }

  mayBegin(address: string): boolean {
    const now = this.#now()
    return listShares(address, this.#isProxy).every(({ name }) => (this.#paidAt.get(name) ?? 0) - now <= burstMs)
  }

  /**
   * Charges a piece of a message. False if its connection has to be closed, because messages that began
   * together come to twice the burst: so no network can use up the rate of all.
   */
  charge(address: string, bytes: number): boolean {
    const now = this.#now()
    let isWithin = true
    for (const { name, share } of listShares(address, this.#isProxy)) {
      const paidAt = Math.max(now, this.#paidAt.get(name) ?? 0) + (bytes + pieceBytes) / (bytesPerMs * share)
      this.#paidAt.set(name, paidAt)
      if (paidAt - now > 2 * burstMs) isWithin = false
    }
    return isWithin
  }
}
