/**
 * From rows to the values that a store returns. Both engines name their columns alike and keep JSON
 * as text, so one reading serves both; finding the rows is each engine's own.
 */
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { EmailContent } from '../../domain/delivery/email-content.ts'
import {
  type EmailState,
  type EndReason,
  type LiveState,
  liveStates,
  suspectAfter,
} from '../../domain/delivery/states.ts'
import type { AppId, EmailId, KeyId } from '../../domain/id.ts'
import { KeyMissing, type KeyRing, unseal } from '../crypto/key-ring.ts'
import type { Claim, EmailQuery, EmailRecord, KeyRecord, QueueSummary, UsageDay } from '../store.ts'
import { dayMs } from './bounds.ts'

export type Row = Record<string, unknown>

export const toApp = (row: Row): App => ({
  id: row.app_id as AppId,
  slug: row.slug as string,
  version: row.version as number,
  status: row.status as AppStatus,
  createdAt: row.created_at as number,
  settings: JSON.parse(row.settings as string),
})

export const toKeyRecord = (row: Row): KeyRecord => ({
  id: row.key_id as KeyId,
  app: row.app_id as AppId,
  name: row.name as string | null,
  createdAt: row.created_at as number,
  expiresAt: row.expires_at as number | null,
  revokedAt: row.revoked_at as number | null,
  lastUsedAt: row.last_used_at as number | null,
})

/** A key that is revoked or has expired. */
export const hasEnded = (
  { revokedAt, expiresAt }: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>,
  nowMs: number,
): boolean => revokedAt !== null || (expiresAt !== null && expiresAt <= nowMs)

const toRecord = (row: Row) => ({
  id: row.email_id as EmailId,
  app: row.app_id as AppId,
  key: row.key_id as KeyId,
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

/** The tables that a query has to read: `queue` holds the live states, `history` the final ones. */
export function tablesOf({ state }: Pick<EmailQuery, 'state'>): { queue: boolean; history: boolean } {
  const live = liveStates.some((name) => name === state)
  return { queue: state === undefined || live, history: state === undefined || !live }
}

/** `EmailQuery` with the name of its recipient in place of the address. */
export type StoredEmailQuery = Omit<EmailQuery, 'to'> & { readonly recipient?: string }

/**
 * The statement that reads one of the two tables, and its values. It names only the filters that are
 * given, so that the plan suits them. `mark` writes the placeholder of the nth value, from 1.
 */
export function emailsStatement(
  table: { readonly name: 'queue' | 'history'; readonly schema?: string },
  { app, key, state, recipient, limit }: StoredEmailQuery,
  mark: (n: number) => string,
): { text: string; values: (string | number)[] } {
  const columns = { app_id: app, key_id: key, state, recipient }
  const filters = Object.entries(columns).filter(
    (filter): filter is [string, string] => filter[1] !== undefined,
  )
  const terms = filters.map(([column], index) => `${column} = ${mark(index + 1)}`)
  // Lets the engine use `history_trouble`, a partial index.
  if (table.name === 'history' && state !== undefined && state !== 'delivered')
    terms.push("state <> 'delivered'")
  const where = terms.length === 0 ? '' : `where ${terms.join(' and ')}`
  const from = table.schema === undefined ? table.name : `${table.schema}.${table.name}`
  return {
    text: `select * from ${from} ${where} order by email_id desc limit ${mark(filters.length + 1)}`,
    values: [...filters.map(([, value]) => value), limit],
  }
}

/** The newest `limit` records of both tables. An email that finished between the two reads is taken as finished. */
export function newestFirst(
  live: readonly EmailRecord[],
  finished: readonly EmailRecord[],
  limit: number,
): EmailRecord[] {
  const byId = new Map([...live, ...finished].map((record) => [record.id, record]))
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
}

/** From rows of `app_id`, `state` and `count`. */
export const toQueueCounts = (rows: readonly Row[]): QueueSummary['counts'] =>
  rows.map((row) => ({
    app: row.app_id as AppId,
    state: row.state as LiveState,
    count: row.count as number,
  }))

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
