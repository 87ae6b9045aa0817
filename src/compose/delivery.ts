/** The worker, its relays, and the store's maintenance. */
import { startMaintenance } from '../delivery/maintenance.ts'
import { CaptureRelay } from '../delivery/relay/capture-relay.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import type { Backpressure } from '../delivery/worker/backpressure.ts'
import { Worker } from '../delivery/worker/worker.ts'
import type { ServiceContext } from './context.ts'
import { composeTransports } from './transports.ts'

export type Delivery = {
  /** Mail was queued. */
  readonly wake: () => void
  /** For requests: see `Backpressure`. */
  readonly waitForTurn: Backpressure['waitForTurn']
  /** Those of all transports, as they are now. */
  readonly relays: () => readonly Relay[]
  /** In dev mode, the relay behind the inbox. */
  readonly captured: CaptureRelay | null
  readonly start: () => Promise<void>
  readonly stop: (graceMs: number) => Promise<void>
}

export function composeDelivery(context: ServiceContext): Delivery {
  const { config, events, random, store, webhooks } = context
  const captured = config.relays.length === 0 ? new CaptureRelay() : null
  const transports = composeTransports(context, captured)
  const { bounceAddress } = config
  const { makeReference } = store
  const worker = new Worker({
    store,
    transports: transports.all(),
    random,
    makeReference,
    bounceAddress,
    emit: events.emit,
    onUnknownTransports: transports.look,
    onTrouble: (event, { appId, content, emailId: id, type }, facts) =>
      webhooks.add(event, appId, { content, id, type }, facts),
  })
  const { wake } = worker
  let stopMaintenance = () => {}
  return {
    wake,
    waitForTurn: worker.backpressure.waitForTurn,
    captured,
    relays: transports.relays,
    start: async () => {
      store.openWorkerSession(wake)
      stopMaintenance = startMaintenance(store, events.emit)
      await transports.start((all) => worker.setTransports(all))
      worker.start()
    },
    stop: async (graceMs) => {
      stopMaintenance()
      transports.stop()
      await worker.stop(graceMs)
    },
  }
}
