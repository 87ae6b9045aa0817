/** The conditions that need attention, the records in which they are found, and the words they share. */
import { type Static, Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { Outage } from '../../domain/delivery/relay-state.ts'
import type { AppId } from '../../domain/id.ts'
import type { ExpiringKey, UsageByApp } from '../../store/operator-store.ts'
import type { HeardSource } from '../../store/report-store.ts'
import type { Finding } from '../../store/store.ts'
import type { ActivityCounts } from '../activity.ts'
import type { AuthHookFault } from '../auth-hooks/find-auth-hook-faults.ts'
import type { CountedQueue, MissingRecord } from '../context.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import type { NodeResource } from '../resources.ts'
import type { WebhookFault } from '../webhooks/judge-webhooks.ts'
import type { QueueResource } from './queue.ts'

/** The most urgent first. */
export const attentionKinds = [
  'store_failing',
  'no_worker',
  'no_relay',
  'requests_turned_away',
  'keys_missing',
  'mail_late',
  'links_expired',
  'mail_failed',
  'mail_deferred',
  'requests_refused',
  'record_missing',
  'check_failed',
  'relay_untried',
  'relay_down',
  'certificate_expires',
  'process_silent',
  'log_lost',
  'queue_nearly_full',
  'daily_limit_near',
  'mail_held',
  'addresses_gone',
  'complaints_many',
  'bounces_many',
  'reports_silent',
  'key_expires',
  'auth_hook_refused',
  'webhook_failing',
  'setting_invalid',
] as const
export type AttentionKind = (typeof attentionKinds)[number]

/** Whether nothing is sent while a condition lasts. */
export const isStop = ({ kind }: { readonly kind: AttentionKind }): boolean =>
  kind === 'store_failing' || kind === 'no_worker' || kind === 'no_relay'

export type Condition = {
  readonly kind: AttentionKind
  readonly message: string
  /** The slugs of the apps that it concerns; none for the whole service. */
  readonly apps?: readonly string[]
  readonly urgent?: boolean
  /** The relay, process, check, key or domain that it concerns, if several of a kind can be there at once. */
  readonly subject?: string
  /** When an outage began, in milliseconds since 1970. */
  readonly since?: number
}

/** The reply that the newest emails of an app in a state got most often, in the last `latelyMinutes`. */
export type UsualReply = {
  readonly text: string
  /** How many of these emails got a reply then, of `newestMax`. */
  readonly emails: number
  /** Whether every reply to them is about the recipient. */
  readonly isOfRecipients: boolean
}

export type Situation = {
  /** Whether the access is for the whole service: others do not see its processes and relays. */
  readonly seesAll: boolean
  readonly apps: readonly App[]
  /** The counts of the current day (UTC). */
  readonly usage: UsageByApp
  /** The counts of the last `reportedDays` of what was delivered, bounced and complained of. */
  readonly reported: UsageByApp
  /** When each source of reports was last heard. */
  readonly sources: readonly HeardSource[]
  readonly expiring: readonly ExpiringKey[]
  readonly queue: QueueResource
  readonly late: CountedQueue['late']
  readonly findings: readonly Finding[]
  /** The records of signing keys that are not in DNS. */
  readonly records: readonly MissingRecord[]
  /** Why mail of connected auth servers is refused. */
  readonly authHooks: readonly AuthHookFault[]
  /** Receivers that do not take webhooks. */
  readonly webhooks: readonly WebhookFault[]
  readonly nodes: readonly NodeResource[]
  /** Outages of relays that are over. */
  readonly outages: readonly Outage[]
  /** The counts of the last `latelyMinutes`, of everything that the access sees. */
  readonly lately: ActivityCounts
  /** The same of the last `overMinutes`. */
  readonly latest: ActivityCounts
  /** The same of each app. */
  readonly byApp: ReadonlyMap<AppId, ActivityCounts>
  /** The links that expired from this minute on (since 1970): `firstMinuteNow`. */
  readonly expired: ReadonlyMap<AppId, number>
  readonly expiredFrom: number
  /** The same of the last `overMinutes`: a condition that is not in them is over. */
  readonly last: ReadonlyMap<AppId, ActivityCounts>
  /** By condition: the usual reply to such mail of an app. */
  readonly replies: Readonly<Partial<Record<AttentionKind, ReadonlyMap<AppId, UsualReply>>>>
  readonly nowMs: number
}

export const attentionKind = () => Type.Enum([...attentionKinds])
export const concernedApps = () => Type.Array(Type.String(), { description: 'The slugs of the apps concerned.' })

export const AttentionResource = closed({
  kind: attentionKind(),
  message: Type.String(),
  apps: concernedApps(),
  urgent: Type.Boolean({ description: 'True if people cannot sign in, or soon cannot.' }),
  subject: orNull(Type.String(), 'The relay, process, check, key or domain that it concerns.'),
  since: orNull(time('Since when nothing has been delivered; null for other conditions.')),
})
export type Attention = Static<typeof AttentionResource>

/** Failed or expired emails: a larger share of all that ended is a fault. */
export const failedShare = 0.05
