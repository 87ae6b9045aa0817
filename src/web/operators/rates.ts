/**
 * Keeps each operator, a token or a person, to a rate: answering operators must not take the time of requests
 * for emails.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { chargeLimit, type Limit } from '../../domain/app/limit.ts'
import { bareAddress, toClientNetwork } from '../../domain/client-network.ts'
import { LruMap } from '../../domain/lru-map.ts'
import type { OperationError } from '../../management/operation/result.ts'

/** 600 a minute, of which 30 at once. */
const requests: Limit = { quota: 30, windowUs: 3e6 }
/** Lower for searches by address, because a stolen token or session would be used for them. */
const searches: Limit = { quota: 60, windowUs: 60e6 }
const bucketsKept = 10_000
/** The error for a request over the rate is sent after this time. */
const refusedAfterMs = 1000

export class OperatorRates {
  readonly #arrivals = new LruMap<string, number>(bucketsKept)

  /** Charges one request. Returns null if it may be answered, else an error, after `refusedAfterMs`. */
  async charge(operator: string, { isSearch = false } = {}): Promise<OperationError | null> {
    const error =
      this.#chargeOne(operator, requests) ??
      (isSearch ? this.#chargeOne(`${operator} search`, searches) : null)
    if (error !== null) await sleep(refusedAfterMs)
    return error
  }

  #chargeOne(bucket: string, limit: Limit): OperationError | null {
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

/** The parts of a request that identify its client. */
type RateRequest = {
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** A rate for each client, and one for all of them together. */
export function newClientRates(perClient: Limit, all: Limit): (request: RateRequest) => boolean {
  const arrivals = new LruMap<string, number>(bucketsKept)
  const mayAny = newSharedRate(all)
  return (request) => {
    const client = identifyClient(request)
    const charge = chargeLimit(perClient, arrivals.get(client) ?? 0, nowUs())
    if (!charge.ok) return false
    arrivals.set(client, charge.arrivalUs)
    return mayAny()
  }
}

/** Longer than any address with brackets and a port. */
const addressMax = 60

/**
 * The client of a request, by its address. If the connection comes from this machine or a private network, a
 * proxy may be in front: then it is the last address of `X-Forwarded-For`, which the nearest proxy has
 * added. An IPv6 network of 64 bits is one client.
 */
function identifyClient({ headers, socket }: RateRequest): string {
  const peer = bareAddress(socket.remoteAddress ?? '')
  const forwarded = String(headers['x-forwarded-for'] ?? '')
  const last = bareAddress(
    forwarded
      .slice(forwarded.lastIndexOf(',') + 1)
      .slice(0, addressMax)
      .trim(),
  )
  const address = isPrivate(peer) && isIP(last) !== 0 ? last : peer
  return toClientNetwork(address)
}

const privateNetworks = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10], // of carriers; container networks use it too
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv4')
privateNetworks.addAddress('::1', 'ipv6')
privateNetworks.addSubnet('fc00::', 7, 'ipv6')
privateNetworks.addSubnet('fe80::', 10, 'ipv6')

const isPrivate = (address: string): boolean =>
  isIP(address) !== 0 && privateNetworks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

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
