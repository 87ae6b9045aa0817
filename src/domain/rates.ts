/** Rates of one process, such as for each client, in memory. */
import { chargeLimit, type Limit } from './limit.ts'
import { LruMap } from './lru-map.ts'

/** Those used least recently are forgotten, and are full again. */
const bucketsKept = 10_000

type Bucket = { readonly name: string; readonly limit: Limit }

export class Rates {
  readonly #arrivals = new LruMap<string, number>(bucketsKept)

  /**
   * Charges all buckets, or none if one refuses. Returns its wait in microseconds, or 0. A refusal keeps no
   * bucket, so no flood of new names pushes out those in use.
   */
  charge(...buckets: readonly Bucket[]): number {
    const nowUs = Math.floor(performance.now() * 1000)
    const arrivals: [name: string, us: number][] = []
    for (const { limit, name } of buckets) {
      const charge = chargeLimit(limit, this.#arrivals.get(name) ?? 0, nowUs)
      if (!charge.ok) return charge.retryAfterUs
      arrivals.push([name, charge.arrivalUs])
    }
    for (const [name, us] of arrivals) this.#arrivals.set(name, us)
    return 0
  }
}
