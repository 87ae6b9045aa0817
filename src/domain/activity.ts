/**
 * The counts behind charts: what happened in each minute, for the whole service, and in each hour, for each app. They are
 * written every few seconds, so a process that dies loses its last ones; limits and usage do not depend on them.
 */
import type { AppId, KeyId, NodeId } from './id.ts'
import type { RefusalCode } from './request/rejection.ts'

/** `minute`: since 1970; the rows of an app begin at whole hours. */
export type ActivityRow = {
  /** Null: the whole service. */
  readonly app: AppId | null
  readonly minute: number
  /**
   * `accepted`, `replayed`, `refused:CODE`, `delivered`, `deferred`, `failed:REASON`, `expired`, `cancelled`, `lost` (a
   * lease), `took:MS` (from acceptance to 250, by bucket) or `reply:CODE` (of relays).
   */
  readonly what: string
  readonly count: number
}

/** The upper bounds of the buckets of `took`, in milliseconds; longer times count as `took:more`. */
const tookBucketsMs = [10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000]

export const tookBucket = (ms: number): string =>
  `took:${tookBucketsMs.find((bound) => ms <= bound) ?? 'more'}`

/**
 * The time within which a share of the emails was delivered, as the upper bound of its bucket in milliseconds; null
 * without emails, or if it is more than the last bound.
 */
export function tookAtMost(counts: ReadonlyMap<string, number>, share: number): number | null {
  const of = (name: string) => counts.get(`took:${name}`) ?? 0
  const all = [...tookBucketsMs, 'more'].reduce((sum: number, name) => sum + of(String(name)), 0)
  let within = 0
  for (const bound of tookBucketsMs) {
    within += of(String(bound))
    if (all > 0 && within >= share * all) return bound
  }
  return null
}

/** A request that was refused, without its content: of the link, the origin alone. */
export type RefusedRequest = {
  readonly requestId: string
  readonly at: number
  readonly app: AppId
  readonly key: KeyId
  readonly code: RefusalCode
  /** Each fault as `field code`. */
  readonly issues: readonly string[]
  /** Scheme, host and port of the link; null if the request had none that can be read. */
  readonly origin: string | null
}

/** How many refusals of an app are kept. */
export const refusalsMax = 100

/** A process of the service, as it describes itself every few seconds. */
export type NodeRecord = {
  readonly id: NodeId
  /** The name of its machine. */
  readonly name: string
  readonly version: string
  readonly roles: readonly string[]
  readonly startedAt: number
  readonly seenAt: number
  readonly relays: readonly RelayState[]
}

/** A relay as one process sees it. */
export type RelayState = {
  /** `host:port`. */
  readonly name: string
  readonly available: boolean
  /** Since when, in milliseconds since 1970. */
  readonly since: number
  /** The reply or fault that made it unavailable; empty while it is available. */
  readonly reason: string
  readonly connections: RelayConnections
}

export type RelayConnections = {
  readonly open: number
  readonly busy: number
  /** How many may be open now. */
  readonly allowed: number
  readonly max: number
}

/** A process that has not been seen for this long is silent: it died, hangs, or has lost the database. */
export const nodeSilentMs = 30_000
