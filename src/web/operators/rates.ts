/**
 * Keeps each operator, a token or a person, to a rate: answering operators must not take the time of requests
 * for emails.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { listShares } from '../../domain/client-network.ts'
import type { Limit } from '../../domain/limit.ts'
import { Rates } from '../../domain/rates.ts'
import type { OperationError } from '../../management/operation/result.ts'
import { type ClientRequest, clientAddress } from '../http/client-address.ts'

/** 600 a minute, of which 30 at once. */
const requests: Limit = { quota: 30, windowUs: 3e6 }
/**
 * Sign-ins of one person: each leaves an audit entry, so a program that signs in again and again has a bound.
 */
const signIns: Limit = { quota: 60, windowUs: 3600e6 }
/** Lower for searches by address, because a stolen token or session would be used for them. */
const searches: Limit = { quota: 60, windowUs: 60e6 }
/** The error for a request over the rate is sent after this time. */
const refusedAfterMs = 1000

export class OperatorRates {
  readonly #rates = new Rates()

  /** Charges one request. Returns null if it may be answered, else an error, after `refusedAfterMs`. */
  async charge(operator: string, { isSearch = false } = {}): Promise<OperationError | null> {
    const error =
      this.#chargeOne(operator, requests) ?? (isSearch ? this.#chargeOne(`${operator} search`, searches) : null)
    if (error !== null) await sleep(refusedAfterMs)
    return error
  }

  /** Charges a sign-in of a person who has proved to be one. False if there were too many within the hour. */
  chargeSignIn(person: string): boolean {
    return this.#chargeOne(`${person} sign-in`, signIns) === null
  }

  #chargeOne(bucket: string, limit: Limit): OperationError | null {
    const waitUs = this.#rates.charge({ name: bucket, limit })
    if (waitUs === 0) return null
    const retryAfterS = Math.ceil(waitUs / 1e6)
    const perMinute = (limit.quota * 60e6) / limit.windowUs
    const message = `Too many requests: at most ${perMinute} a minute. Try again in ${retryAfterS} s.`
    return { code: 'too_many_requests', message, retryAfterS }
  }
}

type ClientRates = {
  readonly ofClient: Limit
  readonly ofAll: Limit
  /** Whether an address may be that of a reverse proxy; `isPrivateNetwork` unless given. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

/**
 * A rate for each client, one for all of them together, and for each network of a client its share of that
 * (`listShares`). A refusal charges none of them.
 */
export function newClientRates({ ofClient, ofAll, isProxy }: ClientRates): (request: ClientRequest) => boolean {
  const rates = new Rates()
  return (request) => {
    const shares = listShares(clientAddress(request, isProxy), () => false)
    const buckets = shares.map(({ name, share }, at) => ({
      name,
      limit: at === 0 ? ofClient : takeShare(ofAll, share),
    }))
    return rates.charge(...buckets) === 0
  }
}

const takeShare = ({ quota, windowUs }: Limit, share: number): Limit => ({
  quota: Math.max(1, Math.floor(quota * share)),
  windowUs,
})
