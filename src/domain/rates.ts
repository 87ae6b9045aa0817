/** Rates of one process, such as for each client, in memory. */
import { chargeLimit, type Limit } from './limit.ts'
import { LruMap } from './lru-map.ts'

/** Those used least recently are forgotten, and are full again. */
const bucketsKept = 10_000

type Bucket = { readonly name: string; readonly limit: Limit }

export class Rates {
  readonly #arrivals = new LruMap<string, number>(bucketsKept)

  /**
   * Charges each bucket, or none if one of them refuses: then the longest wait in microseconds, else 0. A
   * refusal keeps no bucket, so no flood of new names pushes out those in use.
   */
  charge(...buckets: readonly Bucket[]): number {
    const nowUs = Math.floor(performance.now() * 1000)
    const charged = buckets.map(({ limit, name }) => ({
      name,
      charge: chargeLimit(limit, this.#arrivals.get(name) ?? 0, nowUs),
    }))
    const waitUs = Math.max(0, ...charged.map(({ charge }) => (charge.ok ? 0 : charge.retryAfterUs)))
    if (waitUs > 0) return waitUs
    for (const { name, charge } of charged) if (charge.ok) this.#arrivals.set(name, charge.arrivalUs)
    return 0
  }
}
