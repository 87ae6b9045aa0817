/** The conditions that need attention, the records in which they are found, and the words they share. */
import type { App } from '../../domain/app/app.ts'
import { formatCount, sumCounts } from '../../domain/counts.ts'
import type { AppId } from '../../domain/id.ts'
import type { ExpiringKey, UsageDay } from '../../store/operator-store.ts'
import type { Finding } from '../../store/store.ts'
import type { ActivityCounts } from '../activity.ts'
import type { CountedQueue } from '../operation/operation.ts'
import type { NodeResource } from '../resources.ts'
import type { QueueResource } from './show-queue.ts'

/** The most urgent first. */
export const attentionKinds = [
  'no_worker',
  'no_relay',
  'requests_turned_away',
  'mail_late',
  'links_expired',
  'mail_failed',
  'requests_refused',
  'check_failed',
  'relay_down',
  'process_silent',
  'queue_nearly_full',
  'daily_limit_near',
  'mail_held',
  'key_expires',
  'setting_invalid',
] as const
export type AttentionKind = (typeof attentionKinds)[number]

/** Whether nothing is sent while a condition lasts. */
export const isStop = ({ kind }: { readonly kind: AttentionKind }): boolean =>
  kind === 'no_worker' || kind === 'no_relay'

export type Condition = {
  readonly kind: AttentionKind
  readonly message: string
  /** The slugs of the apps that it concerns; none for the whole service. */
  readonly apps?: readonly string[]
  readonly urgent?: boolean
}

export type Situation = {
  /** Whether the access is for the whole service: others do not see its processes and relays. */
  readonly seesAll: boolean
  readonly apps: readonly App[]
  /** The counts of the current day (UTC). */
  readonly usage: ReadonlyMap<AppId, UsageDay['counts']>
  readonly expiring: readonly ExpiringKey[]
  readonly queue: QueueResource
  readonly late: CountedQueue['late']
  readonly findings: readonly Finding[]
  readonly nodes: readonly NodeResource[]
  /** The counts of the last `latelyMinutes`, of everything that the access sees. */
  readonly lately: ActivityCounts
  /** The same of each app. */
  readonly byApp: ReadonlyMap<AppId, ActivityCounts>
  /** The links that expired in the last `latelyMinutes` and after the last outage of a relay. */
  readonly expired: ReadonlyMap<AppId, number>
  /** The newest reply to an email of an app that failed. */
  readonly replies: ReadonlyMap<AppId, string>
  readonly nowMs: number
}

export type Attention = {
  kind: AttentionKind
  message: string
  apps: string[]
  urgent: boolean
}

/** A few failures are typing errors of recipients; a share of all ends is a fault. */
export const failedShare = 0.05
const failedMin = 10
/** So many failures are a fault if nothing else is sent. */
const failedAloneMin = 3

export function isFailing({ delivered, failed: reasons }: Ends): boolean {
  const failed = sumCounts(reasons)
  const isLarge = failed >= failedMin && failed > failedShare * (failed + delivered)
  return isLarge || (failed >= failedAloneMin && delivered === 0)
}

/** Apps that a message names. */
const namedMax = 3

/** `a, b, c and 4 more`. */
export const nameAll = (slugs: readonly string[]): string => {
  const [named, more] = [slugs.slice(0, namedMax).join(', '), slugs.length - namedMax]
  return more > 0 ? `${named} and ${more} more` : named
}

type Ends = Pick<ActivityCounts, 'delivered' | 'failed'>

/** @param when `` or ` in the last 10 minutes`. `reply`: the newest reply of a relay. */
export function describeFailed(
  slugs: readonly string[],
  counts: readonly Ends[],
  { when = '', reply }: { readonly when?: string; readonly reply: string | null },
): string {
  const failed = counts.reduce((sum, { failed: reasons }) => sum + sumCounts(reasons), 0)
  const ended = counts.reduce((sum, { delivered }) => sum + delivered, failed)
  const said = reply === null ? '' : `; last reply: “${reply}”`
  return `${formatCount(failed)} of ${formatCount(ended)} emails from ${nameAll(slugs)} failed${when}${said}.`
}
