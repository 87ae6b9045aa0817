/** The JSON of apps, keys, emails, the queue and usage. Times are ISO 8601 in UTC. */
import type { App } from '../domain/app/app.ts'
import { liveStates } from '../domain/delivery/states.ts'
import type { EmailRecord, KeyRecord, QueueSummary, UsageDay } from '../store/store.ts'

export const iso = (ms: number): string => new Date(ms).toISOString()
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

export const presentApp = (app: App) => ({
  id: app.id,
  slug: app.slug,
  status: app.status,
  createdAt: iso(app.createdAt),
  ...app.settings,
})

export const presentKey = (key: KeyRecord) => ({
  ...key,
  createdAt: iso(key.createdAt),
  expiresAt: isoOrNull(key.expiresAt),
  revokedAt: isoOrNull(key.revokedAt),
  lastUsedAt: isoOrNull(key.lastUsedAt),
})

export const lastReplyOf = (email: EmailRecord): string | null =>
  email.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text ?? null

export const presentEmail = (email: EmailRecord) => ({
  id: email.id,
  app: email.app,
  key: email.key,
  type: email.type,
  state: email.state,
  attempts: email.attempts,
  lostLeases: email.lostLeases,
  acceptedAt: iso(email.acceptedAt),
  expiresAt: iso(email.expiresAt),
  nextAttemptAt: isoOrNull(email.nextAttemptAt),
  finishedAt: isoOrNull(email.finishedAt),
  reason: email.reason,
  lastReply: lastReplyOf(email),
})

export const presentTrail = (email: EmailRecord) =>
  email.trail.map(({ at, reply, ...attempt }) => ({
    at: iso(at),
    ...attempt,
    ...(reply && { reply: reply.text, code: reply.code, enhanced: reply.enhanced }),
  }))

/** `slugOf`: null for an app that has been deleted. */
export function presentQueue(
  { depth, oldestAcceptedAt, nextAttemptAt, counts }: QueueSummary,
  { nowMs, slugOf }: { nowMs: number; slugOf: (app: App['id']) => string | null },
) {
  const total = (state: string) =>
    counts.filter((count) => count.state === state).reduce((sum, { count }) => sum + count, 0)
  const ageMs = oldestAcceptedAt === null ? 0 : Math.max(0, nowMs - oldestAcceptedAt)
  return {
    depth,
    oldestAcceptedAt: isoOrNull(oldestAcceptedAt),
    oldestAgeSeconds: Math.floor(ageMs / 1000),
    nextAttemptAt: isoOrNull(nextAttemptAt),
    states: Object.fromEntries(liveStates.map((state) => [state, total(state)])),
    apps: counts.map(({ app, state, count }) => ({ app, slug: slugOf(app), state, count })),
  }
}

/** The counts of a day that are not refusals. */
export const usageEvents = ['accepted', 'delivered', 'failed', 'expired', 'cancelled']

export function presentUsage({ day, counts }: UsageDay) {
  const refused = Object.fromEntries(Object.entries(counts).filter(([event]) => !usageEvents.includes(event)))
  return { day, ...Object.fromEntries(usageEvents.map((event) => [event, counts[event] ?? 0])), refused }
}
