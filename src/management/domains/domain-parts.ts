/** The facts that the checks of domains need: which resolvers to ask, and how the relays treat mail. */
import { type RelayAddress, relayTraits } from '../../delivery/relay/relay-address.ts'
import { ZoneResolver } from '../../dns/zone-resolver.ts'
import { combineTraits, type RelayTraits } from '../../domain/delivery/relay-traits.ts'
import type { Lookup } from '../../domain/dns/lookup.ts'

export type DomainFacts = {
  /** Looks records of DNS up for one check, which is bounded as a whole. */
  readonly newLookup: () => Lookup
  readonly relayTraits: RelayTraits
}

export const findDomainFacts = ({
  dnsServers,
  relays,
}: {
  readonly dnsServers: readonly string[] | null
  readonly relays: readonly { readonly address: RelayAddress }[]
}): DomainFacts => ({
  newLookup: () => new ZoneResolver({ servers: dnsServers }).lookup,
  relayTraits: combineTraits(relays.map(({ address }) => relayTraits(address))),
})
