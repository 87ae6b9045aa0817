/** The URLs of the relays of a transport, which hold passwords, sealed for the name of the transport. */
import type { StoredTransport, TransportStore } from '../transport-store.ts'
import { type KeyRing, openText, resealAll, sealText } from './key-ring.ts'

const toContext = (name: string): string => `transport ${name}`

/** @param urls separated by spaces */
export const sealTransport = (ring: KeyRing, name: string, urls: string): string =>
  sealText(ring, toContext(name), urls)

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openTransport = (ring: KeyRing, { name, sealed }: Pick<StoredTransport, 'name' | 'sealed'>) =>
  openText(ring, toContext(name), sealed)

/** Returns those that the ring cannot open. */
export const resealTransports = async (
  ring: KeyRing,
  store: Pick<TransportStore, 'listTransports' | 'resealTransport'>,
): Promise<readonly StoredTransport[]> =>
  resealAll(ring, await store.listTransports(), {
    context: ({ name }) => toContext(name),
    write: (transport, sealed) => store.resealTransport(transport, sealed),
  })
