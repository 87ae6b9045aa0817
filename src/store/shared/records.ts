/**
 * From rows to what the interface returns. Both engines name their columns alike and keep JSON as
 * text, so that one reading serves them; how a row is found is each engine's own.
 */
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { AttemptRecord, DeliveryOutcome, EmailState } from '../../domain/delivery/outcome.ts'
import type { AppId, EmailId, KeyId } from '../../domain/id.ts'
import type { EmailRecord, KeyRecord, QueueSummary, UsageDay } from '../store.ts'

export type Row = Record<string, unknown>

/** What `queue.state` counts: 0, 1, 2. */
export const liveStates = ['queued', 'deferred', 'sending'] as const

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

const common = (row: Row) => ({
  id: row.email_id as EmailId,
  app: row.app_id as AppId,
  type: row.type as EmailRecord['type'],
  attempts: row.attempts as number,
  acceptedAt: row.accepted_at as number,
  expiresAt: row.expires_at as number,
  trail: JSON.parse(row.trail as string),
})

/** From a row of `queue`. */
export function toLiveRecord(row: Row): EmailRecord {
  const state = liveStates[row.state as number] ?? 'queued'
  const nextAttemptAt = state === 'deferred' ? (row.due_at as number) : null
  return { ...common(row), state, nextAttemptAt, finishedAt: null, reason: null }
}

/** From a row of `history`. */
export const toFinishedRecord = (row: Row): EmailRecord => ({
  ...common(row),
  state: row.state as EmailState,
  nextAttemptAt: null,
  finishedAt: row.finished_at as number,
  reason: row.reason as string | null,
})

/** The newest `limit` of both; what finished between the two reads, live first, is taken as finished. */
export function newestFirst(
  live: readonly EmailRecord[],
  finished: readonly EmailRecord[],
  limit: number,
): EmailRecord[] {
  const byId = new Map([...live, ...finished].map((record) => [record.id, record]))
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
}

/** From rows of app, state and n. */
export const toQueueCounts = (rows: readonly Row[]): QueueSummary['counts'] =>
  rows.map((row) => ({
    app: row.app_id as AppId,
    state: liveStates[row.state as number] ?? 'queued',
    count: row.n as number,
  }))

/** From rows of day (since 1970), what and n, in the order of the days. */
export function toUsageDays(rows: readonly Row[]): UsageDay[] {
  const days = new Map<number, Record<string, number>>()
  for (const row of rows) {
    const counts = days.get(row.day as number) ?? {}
    counts[row.what as string] = row.n as number
    days.set(row.day as number, counts)
  }
  return [...days].map(([day, counts]) => ({
    day: new Date(day * 86_400_000).toISOString().slice(0, 10),
    counts,
  }))
}

/** What JSON in any engine can keep, whatever a relay says: no NUL, no half of a surrogate pair. */
const storable = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** One line of the trail, but for its time. */
export const attemptRecord = (outcome: DeliveryOutcome): Omit<AttemptRecord, 'at'> => ({
  outcome: outcome.kind,
  ...('relay' in outcome ? { relay: outcome.relay } : {}),
  ...('reply' in outcome ? { reply: storable(outcome.reply) } : {}),
  ...('ambiguous' in outcome && outcome.ambiguous ? { ambiguous: true } : {}),
})
