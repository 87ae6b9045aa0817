/** Relays as processes use them, with their gates, and the messages that they sign. */
import type { Config } from '../config/parse-config.ts'
import type { RelayConfig } from '../config/relays.ts'
import type { DeliverDeps } from '../delivery/deliver.ts'
import type { Signers } from '../delivery/message/signers.ts'
import { GatedRelay, type GateOptions } from '../delivery/relay/gated-relay.ts'
import { ApiClient } from '../delivery/relay/http/api-client.ts'
import { readCertificateExpiry } from '../delivery/relay/oauth/grants.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import { findOAuth, relayTraits } from '../delivery/relay/relay-address.ts'
import { SessionPool } from '../delivery/relay/smtp/session-pool.ts'
import { combineTraits } from '../domain/delivery/relay-traits.ts'

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

/** A message is signed before its relay is chosen, so the signature covers what all of them keep. */
export function chooseSigning(relays: Config['relays'], signers: Signers): DeliverDeps['signing'] {
  if (relays.length === 0) return null
  const { rewrites } = combineTraits(relays.map(({ address }) => relayTraits(address)))
  return rewrites === 'all' ? null : { signers, relayDates: rewrites === 'dates' }
}
