/**
 * The metrics for Prometheus. No label holds an app, a recipient or anything else that grows with use.
 * `counters.ts` counts events, `gauges.ts` asks when Prometheus does.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { MeasuredRelay } from '../domain/delivery/relay-state.ts'
import { addCounters } from './counters.ts'
import type { PosternEvent } from './events.ts'
import { addGauges, type GaugeDeps } from './gauges.ts'

export type Metrics = {
  readonly registry: Registry
  /** As Prometheus reads them. */
  readonly read: () => Promise<string>
  /** In the place of those before. */
  readonly setRelays: (relays: readonly MeasuredRelay[]) => void
  readonly observe: (event: PosternEvent) => void
}

/** The first delays of the event loop have been measured then. */
const firstDelaysMs = 50

/** Gauges that prom-client names `_total`, which Prometheus reserves for counters. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

export function newMetrics(deps: GaugeDeps): Metrics {
  const registry = new Registry()
  let relays: readonly MeasuredRelay[] = []
  const counters = addCounters(registry)
  addGauges(registry, deps, () => relays)
  let added: Promise<void> | null = null
  return {
    registry,
    read: async () => {
      added ??= addNodeMetrics(registry)
      await added
      return registry.metrics()
    },
    observe: counters.observe,
    setRelays: (all) => {
      relays = all
      for (const { name } of all) counters.addRelay(name)
    },
  }
}

/** Not before somebody asks: to measure the event loop's delay, prom-client wakes it 100 times a second. */
async function addNodeMetrics(registry: Registry): Promise<void> {
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
  await sleep(firstDelaysMs)
}
