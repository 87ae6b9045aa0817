/** Keeps each operator, a token or a person, to a rate: answering operators must not take the time of requests for emails. */
import { setTimeout as sleep } from 'node:timers/promises'
import { chargeLimit, type Limit } from '../domain/app/limit.ts'
import { LruMap } from '../domain/lru-map.ts'
import type { Refusal } from '../management/result.ts'

/** 600 a minute, of which 30 at once. */
const requests: Limit = { quota: 30, windowUs: 3e6 }
/** Searches by address are what a stolen token or session would be used for. */
const searches: Limit = { quota: 60, windowUs: 60e6 }
const bucketsMax = 10_000
/** A client over its rate that goes on asking is answered this late. */
const refusedAfterMs = 1000

export class OperatorRates {
  readonly #arrivals = new LruMap<string, number>(bucketsMax)

  /** Charges one request; null if it may be answered. A refusal comes late. */
  async charge(operator: string, { isSearch }: { readonly isSearch: boolean }): Promise<Refusal | null> {
    const refusal =
      this.#chargeOne(operator, requests) ??
      (isSearch ? this.#chargeOne(`${operator} search`, searches) : null)
    if (refusal !== null) await sleep(refusedAfterMs)
    return refusal
  }

  #chargeOne(bucket: string, limit: Limit): Refusal | null {
    const charge = chargeLimit(limit, this.#arrivals.get(bucket) ?? 0, nowUs())
    if (charge.ok) {
      this.#arrivals.set(bucket, charge.arrivalUs)
      return null
    }
    const retryAfterS = Math.ceil(charge.retryAfterUs / 1e6)
    const perMinute = (limit.quota * 60e6) / limit.windowUs
    const message = `Too many requests: at most ${perMinute} a minute. Try again in ${retryAfterS} s.`
    return { code: 'too_many_requests', message, retryAfterS }
  }
}

/** One rate for all clients together. */
export function newSharedRate(limit: Limit): () => boolean {
  let arrivalUs = 0
  return () => {
    const charge = chargeLimit(limit, arrivalUs, nowUs())
    if (charge.ok) arrivalUs = charge.arrivalUs
    return charge.ok
  }
}

const nowUs = (): number => Math.floor(performance.now() * 1000)
