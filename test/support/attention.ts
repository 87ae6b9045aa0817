/** Processes, relays and counts for tests of what needs attention. */
import type { App } from '../../src/domain/app/app.ts'
import { defaultSettings } from '../../src/domain/app/settings.ts'
import type { AppId } from '../../src/domain/id.ts'
import type { ActivityEvent } from '../../src/domain/operator/activity.ts'
import { presentCounts } from '../../src/management/activity.ts'
import type { NodeResource } from '../../src/management/resources.ts'
import type { Situation } from '../../src/management/service/condition.ts'
import { listOutages } from '../../src/management/service/outages.ts'

export const nowMs = Date.UTC(2026, 0, 1)
export const ago = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()

type Relay = NodeResource['relays'][number]
export const relay = (name: string, available: boolean, lastOutage: Relay['lastOutage'] = null): Relay => ({
  name,
  certificateExpiresAt: null,
  available,
  tried: true,
  since: ago(720),
  reason: available ? '' : 'ECONNREFUSED',
  connections: { connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 },
  lastOutage,
})

export const node = (change: Partial<NodeResource> = {}): NodeResource => ({
  id: 'node_1',
  machine: 'mail-1',
  version: '1',
  roles: ['worker'],
  startedAt: ago(3600),
  seenAt: ago(1),
  alive: true,
  faults: [],
  relays: [relay('r1', true), relay('r2', true)],
  ...change,
})

export type Counts = Readonly<Record<string, number>>
export const countOf = (counts: Counts) =>
  presentCounts(Object.entries(counts).map(([event, count]) => ({ event: event as ActivityEvent, count })))

export const newApp = (slug: string, daily = 1000): App => ({
  ...{ id: `app_${slug}` as AppId, slug, version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
  settings: {
    ...{ ...defaultSettings, name: slug, from: { name: slug, address: 'auth@acme.test' } },
    senderDomains: ['acme.test'],
    limits: { ...defaultSettings.limits, daily },
  },
})
export const [acme, globex, hooli] = [newApp('acme'), newApp('globex'), newApp('hooli')]

export type Given = Partial<Omit<Situation, 'lately' | 'latest' | 'byApp' | 'last' | 'queue' | 'replies'>> & {
  /** Those of the service in the last minutes; otherwise as `counts`. */
  readonly latest?: Counts
  readonly replies?: Situation['replies']
  /** Those of the last minutes of each app; those of `byApp` unless given. */
  readonly last?: Readonly<Record<string, Counts>>
  readonly depth?: number
  /** How much of it is held: mail of globex, which is disabled. */
  readonly held?: number
  readonly firstExpiresAt?: string
  readonly nextAttemptAt?: string
  readonly countedAgoS?: number
  /** Those of the service; otherwise the sums of `byApp`. */
  readonly counts?: Counts
  readonly byApp?: Readonly<Record<string, Counts>>
}

const countsOf = (counts: Readonly<Record<string, Counts>>) =>
  new Map(Object.entries(counts).map(([slug, own]) => [`app_${slug}` as AppId, countOf(own)]))

export function newSituation(situation: Given): Situation {
  const {
    depth = 0,
    held = 0,
    firstExpiresAt,
    nextAttemptAt = null,
    countedAgoS = 0,
    counts,
    byApp = {},
    last = byApp,
    latest,
    replies,
    ...given
  } = situation
  const all: Record<string, number> = {}
  for (const [event, count] of Object.values(byApp).flatMap((own) => Object.entries(own)))
    all[event] = (all[event] ?? 0) + count
  const waiting = { queued: depth, sending: 0, deferred: 0 }
  const apps = [
    { app: acme.id, slug: 'acme', held: false, ...waiting, ages: [] },
    { app: globex.id, slug: 'globex', held: true, queued: held, sending: 0, deferred: 0, ages: [] },
  ].filter(({ queued }) => queued > 0)
  return {
    ...{ apps: [acme], usage: new Map(), reported: new Map(), sources: [], expiring: [], late: [] },
    ...{ findings: [], records: [], authHooks: [], webhooks: [], nodes: [node()], nowMs },
    ...{
      expired: new Map(),
      expiredFrom: nowMs / 60_000 - 10,
      seesAll: true,
      last: countsOf(last),
      byApp: countsOf(byApp),
    },
    replies: replies ?? {},
    outages: listOutages(situation.nodes ?? [], []),
    lately: countOf(counts ?? all),
    latest: countOf(latest ?? counts ?? all),
    ...given,
    queue: {
      ...{ depth, max: 1000, oldestAcceptedAt: null, oldestAgeSeconds: 0, nextAttemptAt },
      firstExpiresAt: firstExpiresAt ?? null,
      ...{ states: waiting, apps, countedAt: ago(countedAgoS) },
    },
  }
}
