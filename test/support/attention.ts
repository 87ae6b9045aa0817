/** Processes, relays and counts for tests of what needs attention. */
import type { ActivityEvent } from '../../src/domain/operator/activity.ts'
import { presentCounts } from '../../src/management/activity.ts'
import type { NodeResource } from '../../src/management/resources.ts'

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
  relays: [relay('r1', true), relay('r2', true)],
  ...change,
})

export type Counts = Readonly<Record<string, number>>
export const countOf = (counts: Counts) =>
  presentCounts(Object.entries(counts).map(([event, count]) => ({ event: event as ActivityEvent, count })))
