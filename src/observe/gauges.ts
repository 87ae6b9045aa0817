/** Gauges: what Prometheus asks for at each scrape. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { MeasuredRelay } from '../domain/delivery/relay-state.ts'
import { liveStates } from '../domain/delivery/states.ts'
import type { QueueMeasures } from '../store/operator-store.ts'
import type { Store } from '../store/store.ts'

export type GaugeDeps = {
  readonly store: Pick<Store, 'measureQueue' | 'now'>
  readonly queueMax: number
  readonly engine: 'sqlite' | 'postgres'
  readonly version: string
  /** How many log lines were lost since the start. */
  readonly linesLost: () => number
}

export function addGauges(registry: Registry, deps: GaugeDeps, relays: () => readonly MeasuredRelay[]): void {
  addQueueGauges(registry, deps)
  addRelayGauges(registry, relays)
  const { version, engine } = deps
  const registers = [registry]
  const queueMax = {
    name: 'postern_queue_max',
    help: 'At this depth of the queue, requests are answered 503',
  }
  new Gauge({ ...queueMax, registers }).set(deps.queueMax)
  new Counter({
    name: 'postern_log_lines_lost_total',
    help: 'Log lines lost because standard output could not be written',
    registers,
    collect() {
      this.reset()
      this.inc(deps.linesLost())
    },
  })
  const info = new Gauge({
    name: 'postern_build_info',
    help: '1; the labels are the version of Postern, that of Node, and the store',
    labelNames: ['version', 'node_version', 'engine'],
    registers,
  })
  info.set({ version, node_version: process.versions.node, engine }, 1)
}

/** All come from one read of the store. While it does not answer they are NaN, and the scrape succeeds. */
function addQueueGauges(registry: Registry, { store, engine }: GaugeDeps): void {
  const measure = shareMeasures(store)
  const add = (name: string, help: string, value: (measures: QueueMeasures) => number) => {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const measures = await measure()
        this.set(measures === null ? Number.NaN : value(measures))
      },
    })
  }
  const secondsSince = (time: number | null) => (time === null ? 0 : Math.max(0, store.now() - time) / 1000)
  add('postern_queue_depth', 'Emails queued, deferred or being sent', ({ depth }) => depth)
  add(
    'postern_queue_oldest_age_seconds',
    'Age of the oldest email queued, deferred or being sent. Not for alerts: a greylisted email waits ' +
      'minutes on purpose',
    ({ oldestAcceptedAt }) => secondsSince(oldestAcceptedAt),
  )
  add(
    'postern_queue_lateness_seconds',
    'How long the next email of the app that waits longest has been due. Held mail, and mail that a relay ' +
      'deferred, is not late',
    ({ late }) => Math.max(0, ...late.map(({ since }) => secondsSince(since))),
  )
  if (engine === 'sqlite')
    add(
      'postern_store_disk_free_bytes',
      "Free bytes on the database's disk, with SQLite",
      (measures) => measures.diskFreeBytes ?? Number.NaN,
    )
  new Gauge({
    name: 'postern_queue_emails',
    help: 'Emails by state: queued, sending, deferred, or held (their app is disabled or suspended)',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      const measures = await measure()
      for (const state of [...liveStates, 'held'] as const) this.set({ state }, measures?.states[state] ?? Number.NaN)
    },
  })
}

/** A store that is slow must not cost the counters, which say why. */
const lookMs = 2000

/** Gauges that are collected at once share one read of the store. Null if it does not answer. */
function shareMeasures(store: GaugeDeps['store']): () => Promise<QueueMeasures | null> {
  let looking: Promise<QueueMeasures | null> | null = null
  return () => {
    looking ??= Promise.race([store.measureQueue(), sleep(lookMs, null, { ref: false })])
      .catch(() => null)
      .finally(() => {
        looking = null
      })
    return looking
  }
}

function addRelayGauges(registry: Registry, relays: () => readonly MeasuredRelay[]): void {
  const registers = [registry]
  new Gauge({
    name: 'postern_relay_available',
    help: '0 while the relay is down, refuses the account or all mail, gets no token, or asked for time',
    labelNames: ['relay'],
    registers,
    collect() {
      this.reset() // those of a transport may be gone
      for (const relay of relays()) this.set({ relay: relay.name }, relay.isAvailable() ? 1 : 0)
    },
  })
  new Gauge({
    name: 'postern_relay_connections',
    help:
      'Connections of a relay: connecting, open, of these busy, allowed (fewer if the relay asks for it), ' + 'and max',
    labelNames: ['relay', 'state'],
    registers,
    collect() {
      this.reset()
      for (const relay of relays())
        for (const [state, connections] of Object.entries(relay.connections()))
          this.set({ relay: relay.name, state }, connections)
    },
  })
}
