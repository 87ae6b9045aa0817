/**
 * From rows to the values that a store returns. Both engines name their columns alike and keep JSON
 * as text, so one reading serves both; finding the rows is each engine's own.
 */

import type { ActivityRow } from '../../domain/activity.ts'
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { Action, Actor, AuditAction, AuditEntry } from '../../domain/audit.ts'
import type { EmailContent } from '../../domain/delivery/email-content.ts'
import { type EmailState, type EndReason, suspectAfter } from '../../domain/delivery/states.ts'
import { dayMs } from '../../domain/duration.ts'
import type { AppId, AuditId, EmailId, KeyId, NodeId, TokenId } from '../../domain/id.ts'
import type { Role } from '../../domain/management-token.ts'
import type { NodeRecord } from '../../domain/node.ts'
import type { RefusedRequest } from '../../domain/request/refused-request.ts'
import { KeyMissing, type KeyRing, unseal } from '../crypto/key-ring.ts'
import type { EmailRecord, KeyRecord, TokenRecord, UsageDay } from '../operator-store.ts'
import type { Claim } from '../store.ts'

export type Row = Record<string, unknown>

export const toApp = (row: Row): App => ({
  id: row.app_id as AppId,
  slug: row.slug as string,
  version: row.version as number,
  status: row.status as AppStatus,
  createdAt: row.created_at as number,
  updatedAt: row.updated_at as number,
  settings: JSON.parse(row.settings as string),
})

export const toKeyRecord = (row: Row): KeyRecord => ({
  id: row.key_id as KeyId,
  app: row.app_id as AppId,
  name: row.name as string | null,
  createdAt: row.created_at as number,
  createdBy: row.created_by as string,
  expiresAt: row.expires_at as number | null,
  revokedAt: row.revoked_at as number | null,
  lastUsedAt: row.last_used_at as number | null,
  replaces: row.replaces as KeyId | null,
})

export const toTokenRecord = (row: Row): TokenRecord => ({
  id: row.token_id as TokenId,
  name: row.name as string,
  role: row.role as Role,
  apps: row.apps === null ? null : JSON.parse(row.apps as string),
  createdAt: row.created_at as number,
  createdBy: row.created_by as string,
  expiresAt: row.expires_at as number,
  revokedAt: row.revoked_at as number | null,
  lastUsedAt: row.last_used_at as number | null,
})

export const toAuditEntry = (row: Row): AuditEntry => ({
  id: row.audit_id as AuditId,
  at: row.at as number,
  actor: {
    kind: row.actor_kind as AuditEntry['actor']['kind'],
    id: row.actor_id as TokenId | null,
    name: row.actor_name as string,
    via: row.via as AuditEntry['actor']['via'],
    requestId: row.request_id as string | null,
  },
  action: row.action as AuditAction,
  app: row.app_id as AppId | null,
  target: row.target as string,
  before: row.before === null ? null : JSON.parse(row.before as string),
  after: row.after === null ? null : JSON.parse(row.after as string),
})

/** The columns of `audit` but its id and time, with their values. */
export const auditColumns = (
  { action, app, target, before, after }: Action,
  actor: Actor,
): Readonly<Record<string, string | null>> => ({
  actor_kind: actor.kind,
  actor_id: actor.id,
  actor_name: actor.name,
  via: actor.via,
  action,
  app_id: app,
  target,
  before: before && JSON.stringify(before),
  after: after && JSON.stringify(after),
  request_id: actor.requestId,
})

const toRecord = (row: Row) => ({
  id: row.email_id as EmailId,
  app: row.app_id as AppId,
  key: row.key_id as KeyId | null,
  type: row.type as EmailRecord['type'],
  state: row.state as EmailState,
  attempts: row.attempts as number,
  lostLeases: row.lost_leases as number,
  acceptedAt: row.accepted_at as number,
  expiresAt: row.expires_at as number,
  trail: JSON.parse(row.trail as string),
})

/** From a row of `queue`. */
export function toLiveRecord(row: Row): EmailRecord {
  const record = toRecord(row)
  const nextAttemptAt = record.state === 'deferred' ? (row.due_at as number) : null
  return { ...record, nextAttemptAt, finishedAt: null, reason: null }
}

/** From a row of `history`. */
export const toFinishedRecord = (row: Row): EmailRecord => ({
  ...toRecord(row),
  nextAttemptAt: null,
  finishedAt: row.finished_at as number,
  reason: row.reason as EndReason | null,
})

export const toActivityRow = (row: Row): Omit<ActivityRow, 'app'> => ({
  minute: row.minute as number,
  event: row.event as ActivityRow['event'],
  count: row.count as number,
})

/** The `app_id` of an activity row: empty for the service. */
export const activityApp = (app: AppId | null): string => app ?? ''

export const activityApps = (apps: readonly AppId[] | null): readonly string[] => apps ?? [activityApp(null)]

export const toRefusal = (row: Row): RefusedRequest => ({
  requestId: row.request_id as string,
  at: row.at as number,
  app: row.app_id as AppId,
  key: row.key_id as KeyId,
  code: row.code as RefusedRequest['code'],
  issues: JSON.parse(row.issues as string),
  origin: row.origin as string | null,
})

export const toNodeRecord = (row: Row): NodeRecord => ({
  id: row.node_id as NodeId,
  machine: row.machine as string,
  version: row.version as string,
  roles: JSON.parse(row.roles as string),
  startedAt: row.started_at as number,
  seenAt: row.seen_at as number,
  relays: JSON.parse(row.relays as string),
})

/** From rows of `app_id`, `event` and `count`. */
export function toCountsByApp(rows: readonly Row[]): ReadonlyMap<AppId, UsageDay['counts']> {
  const apps = new Map<AppId, Record<string, number>>()
  for (const { app_id, event, count } of rows) {
    const counts = apps.get(app_id as AppId) ?? {}
    counts[event as string] = count as number
    apps.set(app_id as AppId, counts)
  }
  return apps
}

/** From rows of `day` (since 1970), `event` and `count`, in the order of the days. */
export function toUsageDays(rows: readonly Row[]): UsageDay[] {
  const days = new Map<number, Record<string, number>>()
  for (const row of rows) {
    const counts = days.get(row.day as number) ?? {}
    counts[row.event as string] = row.count as number
    days.set(row.day as number, counts)
  }
  return [...days].map(([day, counts]) => ({
    day: new Date(day * dayMs).toISOString().slice(0, 10),
    counts,
  }))
}

/** The columns of `queue` that a claim is made of. */
export type ClaimRow = {
  readonly email_id: EmailId
  readonly app_id: AppId
  readonly type: Claim['type']
  readonly attempts: number
  readonly lost_leases: number
  readonly fence: number
  readonly accepted_at: number
  readonly expires_at: number
  readonly traceparent: string | null
}

export const toClaim = (row: ClaimRow, content: EmailContent, nowMs: number): Claim => ({
  emailId: row.email_id,
  fence: row.fence,
  appId: row.app_id,
  type: row.type,
  content,
  acceptedAt: row.accepted_at,
  expiresAt: row.expires_at,
  attempt: row.attempts,
  lifeLeftMs: row.expires_at - nowMs,
  ageMs: nowMs - row.accepted_at,
  traceparent: row.traceparent,
  isSuspect: row.lost_leases >= suspectAfter,
})

/** `key_missing` can be opened once the ring holds its key again; `damaged` never. */
export type Opened =
  | { readonly kind: 'content'; readonly content: EmailContent }
  | { readonly kind: 'key_missing' | 'damaged'; readonly why: string }

/** Opens the sealed content of an email. */
export function openContent(ring: KeyRing, id: EmailId, sealed: Uint8Array): Opened {
  try {
    const content = JSON.parse(unseal(ring, contentContext(id), sealed))
    return { kind: 'content', content }
  } catch (error) {
    if (error instanceof KeyMissing) return { kind: 'key_missing', why: error.message }
    return { kind: 'damaged', why: 'the sealed content cannot be opened' }
  }
}

/** The context that an email's content is sealed for. */
export const contentContext = (id: EmailId): string => `email ${id}`
