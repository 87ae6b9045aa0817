/** The relays of a transport, as an admin writes them and as the key ring seals them. */
import { relayPrefix } from '../domain/delivery/transport.ts'
import { openTransport, sealTransport } from '../store/crypto/sealed-transport.ts'
import type { StoredTransport } from '../store/transport-store.ts'
import type { Config } from './parse-config.ts'
import { type RelayConfig, type RelayFault, toRelayConfigs } from './relays.ts'
import { parseStoredRelays } from './stored-relays.ts'

/** Its relays, or what is wrong with them. */
type ReadTransport = { readonly relays: readonly RelayConfig[]; readonly faults: readonly RelayFault[] }

type Settings = Pick<Config, 'allowsPrivateTransports' | 'dnsServers' | 'relayDefaults' | 'ring'>

export function newTransportTexts({ allowsPrivateTransports, dnsServers, relayDefaults, ring }: Settings) {
  const read = (name: string, urls: readonly string[]): ReadTransport => {
    const { faults, relays } = parseStoredRelays(urls, { allowsPrivate: allowsPrivateTransports, dnsServers })
    return { faults, relays: faults.length === 0 ? toRelayConfigs(relays, relayDefaults, relayPrefix(name)) : [] }
  }
  return {
    read,
    seal: (name: string, urls: readonly string[]) => sealTransport(ring, name, urls.join(' ')),
    open: (stored: StoredTransport): ReadTransport => {
      const urls = openTransport(ring, stored)
      if (urls === null)
        return { relays: [], faults: [{ index: null, text: 'the key ring lacks the key that sealed it' }] }
      return read(stored.name, urls.split(' '))
    },
  }
}
