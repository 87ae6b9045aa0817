/** The part of a store that keeps the lists of relays of apps. The rules of `store.ts` hold. */
import type { Actor } from '../domain/operator/audit.ts'

export type StoredTransport = {
  readonly name: string
  /** The URLs of its relays, sealed by the key ring, as base64url. */
  readonly sealed: string
  readonly createdAt: number
  readonly changedAt: number
}

/** `before` and `after`: the names of its relays, for the audit. */
type TransportChange = Pick<StoredTransport, 'name' | 'sealed'> & {
  readonly before: readonly string[] | null
  readonly after: readonly string[]
}

export interface TransportStore {
  /** By name. It waits for no operator. */
  listTransports(): Promise<StoredTransport[]>
  /** Makes or replaces one. `too_many`: there are `transportsMax` others. */
  putTransport(change: TransportChange, actor: Actor): Promise<StoredTransport | 'too_many'>
  /** False if there is no such transport. The mail of apps that use it waits. */
  deleteTransport(name: string, actor: Actor): Promise<boolean>
  /** Stores one that was sealed anew, unless it was changed since it was read. */
  resealTransport(transport: Pick<StoredTransport, 'name' | 'sealed'>, resealed: string): Promise<void>
}
