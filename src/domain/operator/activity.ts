/**
 * The counts behind charts: events of each minute for the whole service, and of each hour for each app; for
 * two hours, the ends and answers of each app by the minute, too. They are written every few seconds, so a
 * process that dies loses its last ones; limits and usage do not depend on them.
 */
import type { FailureCause } from '../delivery/failure-cause.ts'
import type { FailureReason } from '../delivery/states.ts'
import type { AppId } from '../id.ts'
import type { RefusalCode } from '../request/rejection.ts'

/**
 * `gone`: a mailbox that is said not to exist, by a relay or a report. `took`: from acceptance to 250, by
 * bucket. `reply`: a reply of a relay, by its codes. `lost`: a lease. `key`: an accepted request, by its key.
 * `delivered_by` and its siblings: an attempt, by the name of the relay.
 */
export type ActivityEvent =
  | 'accepted'
  | 'replayed'
  | `refused:${RefusalCode}`
  | 'delivered'
  | 'deferred'
  | `failed:${FailureReason}`
  | 'expired'
  | 'cancelled'
  | `bounced:${FailureCause}`
  | 'complained'
  | 'suppressed'
  | 'gone'
  | 'lost'
  | `took:${string}`
  | `reply:${string}`
  | `key:${string}`
  | `${RelayOutcome}_by:${string}`

/** The ends of an attempt that are counted for each relay. */
export const relayOutcomes = ['delivered', 'deferred', 'failed'] as const
type RelayOutcome = (typeof relayOutcomes)[number]

/** `minute`: since 1970; a span of 60 begins at a whole hour. */
export type ActivityRow = {
  /** Null: the whole service. */
  readonly app: AppId | null
  /** How many minutes it counts. */
  readonly span: 1 | 60
  readonly minute: number
  readonly event: ActivityEvent
  readonly count: number
}

/** How often a process writes its counts and refusals, in milliseconds. */
export const recordEveryMs = 5000

/** The upper bounds of the buckets of `took`, in milliseconds; longer times count as `took:more`. */
const tookBucketsMs = [10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 3_600_000]

export const tookBucket = (ms: number): ActivityEvent => `took:${tookBucketsMs.find((bound) => ms <= bound) ?? 'more'}`

/**
 * The time within which a share of the emails was delivered, as the upper bound of its bucket in
 * milliseconds; null without emails, or if it is more than the last bound.
 */
export function tookAtMost(counts: ReadonlyMap<ActivityEvent, number>, share: number): number | null {
  const of = (bucket: number | 'more') => counts.get(`took:${bucket}`) ?? 0
  const all = tookBucketsMs.reduce((sum, bound) => sum + of(bound), of('more'))
  let within = 0
  for (const bound of tookBucketsMs) {
    within += of(bound)
    if (all > 0 && within >= share * all) return bound
  }
  return null
}

/** The counts of the events with this prefix, by the rest of their names. */
export function countsBelow(
  counts: ReadonlyMap<ActivityEvent, number>,
  prefix: 'refused' | 'failed' | 'bounced' | 'reply' | 'key' | `${RelayOutcome}_by`,
): Record<string, number> {
  const below = [...counts].filter(([event]) => event.startsWith(`${prefix}:`))
  return Object.fromEntries(below.map(([event, count]) => [event.slice(prefix.length + 1), count]))
}
