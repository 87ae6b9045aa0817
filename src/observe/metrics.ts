/**
 * The metrics for Prometheus, counted from the event stream. No label holds an app, a recipient or
 * anything else that grows with use.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { failureReasons } from '../domain/delivery/states.ts'
import type { PosternEvent } from './events.ts'

export type Metrics = {
  readonly registry: Registry
  /** A relay that counts as available until an event says otherwise. */
  readonly addRelay: (relay: string) => void
  readonly observe: (event: PosternEvent) => void
}

/** As the store answers it; this folder imports no store. */
type QueueGauge = { readonly depth: number; readonly oldestAcceptedAt: number | null }
export type MetricsDeps = { readonly queueGauge: () => Promise<QueueGauge>; readonly now: () => number }

const secondsBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400,
]

/** Gauges that prom-client names `_total`, which Prometheus reserves for counters. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

export function newMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
  addQueueGauges(registry, deps)
  const counters = newCounters(registry)
  startAtZero(counters)
  return {
    registry,
    addRelay: (relay) => counters.relays.set({ relay }, 1),
    observe: (event) => count(counters, event),
  }
}

type Counters = ReturnType<typeof newCounters>

function newCounters(registry: Registry) {
  const registers = [registry]
  return {
    requests: new Counter({
      name: 'postern_requests_total',
      help: 'Answers of POST /v1/email',
      labelNames: ['status', 'code'],
      registers,
    }),
    attempts: new Counter({
      name: 'postern_attempts_total',
      help: 'Recorded outcomes of delivery attempts, unattempted included',
      labelNames: ['outcome'],
      registers,
    }),
    ended: new Counter({
      name: 'postern_emails_finished_total',
      help: 'Emails that ended in this process, by final state and reason; not those that a command cancelled',
      labelNames: ['state', 'reason'],
      registers,
    }),
    lostLeases: new Counter({
      name: 'postern_leases_lost_total',
      help: 'Leases that this process took back, from dead workers or lapsed',
      registers,
    }),
    latency: new Histogram({
      name: 'postern_accept_to_delivered_seconds',
      help: 'From acceptance to the 250 of the relay',
      buckets: secondsBuckets,
      registers,
    }),
    relays: new Gauge({
      name: 'postern_relay_available',
      help: '0 while the breaker of a relay is open',
      labelNames: ['relay'],
      registers,
    }),
  }
}

/** The series that alerts are built on: `increase()` misses the first event of a series that begins with 1. */
function startAtZero({ requests, ended }: Counters): void {
  for (const code of ['queue_full', 'queue_unavailable']) requests.inc({ status: 503, code }, 0)
  ended.inc({ state: 'expired', reason: '' }, 0)
  for (const reason of failureReasons) ended.inc({ state: 'failed', reason }, 0)
}

function count(
  { requests, attempts, ended, latency, lostLeases, relays }: Counters,
  event: PosternEvent,
): void {
  switch (event.kind) {
    case 'request_answered':
      requests.inc({ status: event.status, code: event.code })
      return
    case 'attempt_recorded': {
      const { outcome, sinceAcceptedMs } = event
      attempts.inc({ outcome: outcome.kind })
      if (isFinal(outcome)) ended.inc({ state: outcome.kind, reason: reasonOf(outcome) })
      if (outcome.kind === 'delivered') latency.observe(Math.max(0, sinceAcceptedMs) / 1000)
      return
    }
    case 'emails_ended':
      for (const { state, reason } of event.ended) ended.inc({ state, reason: reason ?? '' })
      return
    case 'leases_taken_back':
      lostLeases.inc(event.lost.length)
      return
    case 'relay_changed':
      relays.set({ relay: event.relay }, event.available ? 1 : 0)
      return
    default:
  }
}

const isFinal = ({ kind }: DeliveryOutcome): boolean => kind !== 'deferred' && kind !== 'unattempted'
const reasonOf = (outcome: DeliveryOutcome): string => ('reason' in outcome ? outcome.reason : '')

/** Both gauges come from one look at the store. While it does not answer they are NaN, and the scrape succeeds. */
function addQueueGauges(registry: Registry, { queueGauge, now }: MetricsDeps): void {
  let look: Promise<QueueGauge> | null = null
  const lookOnce = () => {
    look ??= queueGauge()
      .catch(() => ({ depth: Number.NaN, oldestAcceptedAt: Number.NaN }))
      .finally(() => {
        look = null
      })
    return look
  }
  const registers = [registry]
  new Gauge({
    name: 'postern_queue_depth',
    help: 'Emails queued, deferred or being sent',
    registers,
    async collect() {
      this.set((await lookOnce()).depth)
    },
  })
  new Gauge({
    name: 'postern_queue_oldest_age_seconds',
    help: 'Age of the oldest email queued, deferred or being sent',
    registers,
    async collect() {
      const { oldestAcceptedAt } = await lookOnce()
      this.set(oldestAcceptedAt === null ? 0 : Math.max(0, now() - oldestAcceptedAt) / 1000)
    },
  })
}
