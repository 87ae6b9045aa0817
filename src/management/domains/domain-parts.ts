/** The facts that the checks of domains need: which resolvers to ask, and how the relays treat mail. */
import { type RelayAddress, relayTraits } from '../../delivery/relay/relay-address.ts'
import { ZoneResolver } from '../../dns/zone-resolver.ts'
import { combineTraits } from '../../domain/delivery/relay-traits.ts'
import type { Management } from '../context.ts'

export const newDomainFacts = ({
  dnsServers,
  relays,
}: {
  readonly dnsServers: readonly string[] | null
  readonly relays: readonly { readonly address: RelayAddress }[]
}): Pick<Management, 'newLookup' | 'relayTraits'> => ({
  newLookup: () => new ZoneResolver({ servers: dnsServers }).lookup,
  relayTraits: combineTraits(relays.map(({ address }) => relayTraits(address))),
})
