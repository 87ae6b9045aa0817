/** The transports of a process that sends: the relays of the service, and those that are stored. */
import type { RelayConfig } from '../config/relays.ts'
import { newTransportTexts } from '../config/transports.ts'
import { Signers } from '../delivery/message/signers.ts'
import type { CaptureRelay } from '../delivery/relay/capture-relay.ts'
import type { GateOptions } from '../delivery/relay/gated-relay.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import { SimulatedRelay } from '../delivery/relay/simulated-relay.ts'
import { leavesInClear } from '../delivery/relay/smtp/connect.ts'
import type { Transport } from '../delivery/transport.ts'
import { simulatedTransport } from '../domain/app/test-side.ts'
import { SharedRead } from '../domain/remembered.ts'
import { sealInboxEmail } from '../store/crypto/sealed-inbox-email.ts'
import { openSigningKey } from '../store/crypto/signing-key.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { StoredTransport } from '../store/transport-store.ts'
import type { ServiceContext } from './context.ts'
import { chooseSigning, newRelay } from './relays.ts'

export type Transports = {
  /** As they are now, that of test keys included. The first one is that of the service. */
  readonly all: () => readonly Transport[]
  /** Those that send. */
  readonly relays: () => readonly Relay[]
  /** Reads those that are stored, now and from then on. One that has not changed stays the same object. */
  readonly start: (onChange: (all: readonly Transport[]) => void) => Promise<void>
  /** Mail waits for these, which the worker does not have. */
  readonly look: (names: readonly (string | null)[]) => void
  readonly stop: () => void
}

/** How soon a change is known to every process that sends. */
const readEveryMs = 5000
/** Mail may also wait for a transport that was deleted. */
const lookEveryMs = 250

/** @param captured takes all mail in dev mode; null otherwise */
export function composeTransports(context: ServiceContext, captured: CaptureRelay | null): Transports {
  const { config, events, metrics, store } = context
  const newTransport = newMaker(context, captured)
  const texts = newTransportTexts(config)
  const ofService = newTransport(null, config.relays)
  const simulated = new SimulatedRelay(({ describe, id, to }) =>
    store.keepInboxEmail({ id, sealed: sealInboxEmail(config.ring, id, JSON.stringify({ ...describe(), to })) }),
  )
  const ofTests: Transport = { name: simulatedTransport, relays: [simulated], signing: null }
  /** A worker without test mail has no lane for it. */
  let hasTests = false
  let known: readonly { readonly stored: StoredTransport; readonly transport: Transport }[] = []
  let timer: NodeJS.Timeout | undefined
  const real = () => [ofService, ...known.map(({ transport }) => transport)]
  const all = () => [...real(), ...(hasTests ? [ofTests] : [])]
  const relays = () => [...new Set(real().flatMap((transport) => transport.relays))]
  metrics.setRelays(relays())

  const open = (stored: StoredTransport): Transport => {
    const { faults, relays } = texts.open(stored)
    for (const { text } of faults) events.emit({ kind: 'transport_closed', transport: stored.name, reason: text })
    return newTransport(stored.name, relays)
  }
  let onChange: (all: readonly Transport[]) => void = () => {}
  /** One at a time. While the store does not answer, the transports stay as they are. */
  const reading = new SharedRead(
    async () => {
      try {
        const [before, stored] = [known, await store.listTransports()]
        known = stored.map(
          (one) => before.find((other) => isSame(other.stored, one)) ?? { stored: one, transport: open(one) },
        )
        if (before.length === known.length && known.every((one) => before.includes(one))) return
        metrics.setRelays(relays())
        onChange(all())
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) events.emit({ kind: 'bug', doing: 'reading the transports', error })
      }
    },
    () => lookEveryMs,
  )
  return {
    all,
    relays,
    start: async (listener) => {
      onChange = listener
      await reading.get()
      timer = setInterval(() => void reading.get(), readEveryMs)
    },
    look: (names) => {
      if (names.some((name) => name !== simulatedTransport)) void reading.get()
      if (hasTests || !names.includes(simulatedTransport)) return
      hasTests = true
      onChange(all())
    },
    stop: () => clearInterval(timer),
  }
}

/** A seal is never made twice. */
const isSame = (one: StoredTransport, other: StoredTransport): boolean =>
  one.name === other.name && one.sealed === other.sealed

function newMaker({ config, events, random, store }: ServiceContext, captured: CaptureRelay | null) {
  const onChange: GateOptions['onChange'] = (change) => events.emit({ kind: 'relay_changed', ...change })
  const signers = new Signers({ store, open: (key) => openSigningKey(config.ring, key), emit: events.emit })
  return (name: string | null, relays: readonly RelayConfig[]): Transport => {
    for (const { address, name: relay } of relays)
      if (address.protocol === 'smtp' && leavesInClear(address)) events.emit({ kind: 'relay_in_clear', relay })
    if (captured !== null) return { name, relays: [captured], signing: null }
    const opened = relays.map((relay) => newRelay(relay, { random, onChange }))
    return { name, relays: opened, signing: chooseSigning(relays, signers) }
  }
}
