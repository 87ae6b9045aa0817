/**
 * What Prometheus reads. No label ever holds an app, a recipient or anything else that grows with
 * use or tells about people.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = {
  readonly registry: Registry
  readonly answered: (status: number, code: string) => void
  readonly attempted: (outcome: string) => void
  readonly delivered: (sinceAcceptedMs: number) => void
  readonly relayAvailable: (relay: string, available: boolean) => void
}

export type QueueGauge = () => Promise<{ readonly depth: number; readonly oldestAcceptedAt: number | null }>

const unknown = { depth: Number.NaN, oldestAcceptedAt: Number.NaN }

const secondsBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400,
]

export function newMetrics(queueGauge: QueueGauge, nowMs: () => number): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'postern_requests_total',
    help: 'Answers of POST /v1/email',
    labelNames: ['status', 'code'],
    registers,
  })
  const attempts = new Counter({
    name: 'postern_attempts_total',
    help: 'Outcomes of delivery attempts',
    labelNames: ['outcome'],
    registers,
  })
  const latency = new Histogram({
    name: 'postern_accept_to_delivered_seconds',
    help: 'From acceptance to the 250 of the relay',
    buckets: secondsBuckets,
    registers,
  })
  const relays = new Gauge({
    name: 'postern_relay_available',
    help: '0 while the breaker of a relay is open',
    labelNames: ['relay'],
    registers,
  })
  const oldest = new Gauge({
    name: 'postern_queue_oldest_age_seconds',
    help: 'Age of the oldest queued email',
    registers,
  })
  new Gauge({
    name: 'postern_queue_depth',
    help: 'Emails queued, deferred or being sent',
    registers,
    async collect() {
      // While the store does not answer, nobody knows; the other metrics are wanted then most of all.
      const { depth, oldestAcceptedAt } = await queueGauge().catch(() => unknown)
      this.set(depth)
      oldest.set(oldestAcceptedAt === null ? 0 : Math.max(0, nowMs() - oldestAcceptedAt) / 1000)
    },
  })
  return {
    registry,
    answered: (status, code) => requests.inc({ status, code }),
    attempted: (outcome) => attempts.inc({ outcome }),
    delivered: (sinceAcceptedMs) => latency.observe(Math.max(0, sinceAcceptedMs) / 1000),
    relayAvailable: (relay, available) => relays.set({ relay }, available ? 1 : 0),
  }
}
