/** The worker, its relays, and the store's maintenance. */
import type { RelayConfig } from '../config/relays.ts'
import type { DeliverDeps } from '../delivery/deliver.ts'
import { startMaintenance } from '../delivery/maintenance.ts'
import { Signers } from '../delivery/message/signers.ts'
import { CaptureRelay } from '../delivery/relay/capture-relay.ts'
import { GatedRelay, type GateOptions } from '../delivery/relay/gated-relay.ts'
import { ApiClient } from '../delivery/relay/http/api-client.ts'
import { readCertificateExpiry } from '../delivery/relay/oauth/grants.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import { findOAuth, relayTraits } from '../delivery/relay/relay-address.ts'
import { leavesInClear } from '../delivery/relay/smtp/connect.ts'
import { SessionPool } from '../delivery/relay/smtp/session-pool.ts'
import type { Backpressure } from '../delivery/worker/backpressure.ts'
import { Worker } from '../delivery/worker/worker.ts'
import { combineTraits } from '../domain/delivery/relay-traits.ts'
import { openSigningKey } from '../store/crypto/signing-key.ts'
import type { ServiceContext } from './context.ts'

export type Delivery = {
  /** Mail was queued. */
  readonly wake: () => void
  /** For requests: see `Backpressure`. */
  readonly waitForTurn: Backpressure['waitForTurn']
  readonly relays: readonly Relay[]
  /** In dev mode, the relay behind the inbox. */
  readonly captured: CaptureRelay | null
  readonly start: () => void
  readonly stop: (graceMs: number) => Promise<void>
}

export function composeDelivery(context: ServiceContext): Delivery {
  const { config, events, metrics, random, store, webhooks } = context
  const captured = config.relays.length === 0 ? new CaptureRelay() : null
  const onChange: GateOptions['onChange'] = (change) => events.emit({ kind: 'relay_changed', ...change })
  const relays: readonly Relay[] =
    captured === null ? config.relays.map((relay) => newRelay(relay, { random, onChange })) : [captured]
  for (const relay of relays) metrics.addRelay(relay)
  for (const { address, name } of config.relays)
    if (address.protocol === 'smtp' && leavesInClear(address)) events.emit({ kind: 'relay_in_clear', relay: name })
  const { bounceAddress } = config
  const { makeReference } = store
  const signing = composeSigning(context)
  const worker = new Worker({
    store,
    relays,
    random,
    makeReference,
    bounceAddress,
    signing,
    emit: events.emit,
    onFailed: ({ appId, content, emailId: id, type }, facts) =>
      webhooks.add('email.failed', appId, { content, id, type }, facts),
  })
  const wake = () => worker.wake()
  let stopMaintenance = () => {}
  return {
    wake,
    waitForTurn: worker.backpressure.waitForTurn,
    captured,
    relays,
    start: () => {
      store.openWorkerSession(wake)
      stopMaintenance = startMaintenance(store, events.emit)
      worker.start()
    },
    stop: async (graceMs) => {
      stopMaintenance()
      await worker.stop(graceMs)
    },
  }
}

/** A message is signed before its relay is chosen, so the signature covers what all of them keep. */
function composeSigning({ config, events, store }: ServiceContext): DeliverDeps['signing'] {
  const { relays, ring } = config
  if (relays.length === 0) return null
  const { rewrites } = combineTraits(relays.map(({ address }) => relayTraits(address)))
  if (rewrites === 'all') return null
  const signers = new Signers({ store, open: (key) => openSigningKey(ring, key), emit: events.emit })
  return { signers, relayDates: rewrites === 'dates' }
}

/** A relay, and its gate. */
export function newRelay(
  { name, address, ...bounds }: RelayConfig,
  options: Pick<GateOptions, 'random' | 'onChange'>,
): Relay {
  const client =
    address.protocol === 'smtp' ? new SessionPool(name, address) : new ApiClient(name, address, bounds.connectionsMax)
  const oauth = findOAuth(address)
  const certificateExpiresAt = oauth === null ? null : readCertificateExpiry(oauth)
  return new GatedRelay(client, { ...bounds, ...options, certificateExpiresAt })
}
