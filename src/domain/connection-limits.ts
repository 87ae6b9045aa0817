/**
 * Which connections of a listener stay open: the one policy of all listeners.
 *
 * - There is a limit for all connections, and each network of a client has a share of it (`listShares`), so
 *   that no stranger holds the connections of others.
 * - A connection is idle while it has no work: no request whose header has arrived, no message. One that
 *   sends a header byte by byte is idle.
 * - Where a limit is reached, a new connection closes the one there that has been idle longest. If none is
 *   idle, the new one is refused.
 * - A reverse proxy carries the connections of all clients, so only the limit of all applies to it.
 */
import { listShares } from './client-network.ts'

type Group = {
  readonly name: string
  readonly limit: number
  size: number
  /** In the order in which they became idle. */
  readonly idle: Set<object>
}

/** `groups`: from the smallest network to all connections; each contains the one before it. */
type Entry = { readonly groups: readonly Group[]; readonly close: () => void; work: number }

export class ConnectionLimits<Connection extends object> {
  readonly #max: number
  readonly #isProxy: (address: string) => boolean
  readonly #groups = new Map<string, Group>()
  readonly #entries = new Map<object, Entry>()

  /** @param isProxy whether an address may be that of a reverse proxy */
  constructor(max: number, isProxy: (address: string) => boolean) {
    this.#max = max
    this.#isProxy = isProxy
  }

  /** False if the connection is refused. It is idle at first. */
  admit(connection: Connection, { address, close }: { address: string; close: () => void }): boolean {
    const groups = this.#findGroups(address)
    // Closing one of the smallest full group makes room in all groups that contain it.
    const full = groups.find(({ size, limit }) => size >= limit)
    if (full !== undefined) {
      const [longestIdle] = full.idle
      if (longestIdle === undefined) return false
      const { close: closeIdle } = this.#entries.get(longestIdle) as Entry
      this.remove(longestIdle as Connection)
      closeIdle()
    }
    for (const group of groups) {
      this.#groups.set(group.name, group)
      group.size += 1
      group.idle.add(connection)
    }
    this.#entries.set(connection, { groups, close, work: 0 })
    return true
  }

  remove(connection: Connection): void {
    const entry = this.#entries.get(connection)
    if (entry === undefined) return
    this.#entries.delete(connection)
    for (const group of entry.groups) {
      group.idle.delete(connection)
      group.size -= 1
      if (group.size === 0) this.#groups.delete(group.name)
    }
  }

  /** A connection may have several pieces of work, as requests that were sent together. */
  beginWork(connection: Connection): void {
    const entry = this.#entries.get(connection)
    if (entry === undefined) return
    entry.work += 1
    for (const { idle } of entry.groups) idle.delete(connection)
  }

  endWork(connection: Connection): void {
    const entry = this.#entries.get(connection)
    if (entry === undefined) return
    entry.work -= 1
    if (entry.work === 0) for (const { idle } of entry.groups) idle.add(connection)
  }

  #findGroups(address: string): Group[] {
    return listShares(address, this.#isProxy).map(({ name, share }) => {
      const limit = Math.max(1, Math.floor(this.#max * share))
      return this.#groups.get(name) ?? { name, limit, size: 0, idle: new Set() }
    })
  }
}
