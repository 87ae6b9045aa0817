/**
 * How much a worker claims. It claims what its connections can send soon: mail that waits in a worker
 * cannot be taken by another one. No app gets more than three quarters of the connections.
 */
import type { Attempt } from '../deliver.ts'
import { inOrder, type Relay } from '../relay/relay.ts'
import type { ClaimedEmails } from './claimed-emails.ts'

/** Claim only what the connections can send within this time, beyond one email for each free connection. */
const aheadMs = 10
const claimMax = 256
const appShare = 0.75
/**
 * Nothing else is claimed beside a suspect for this long. A longer pause would delay other mail, and most
 * suspects are harmless.
 */
export const aloneMs = 100

/**
 * How many emails may be in progress: those that are, which may hang for minutes at any relay; as many as the
 * first available relay has free connections; and a probe for each relay before it. If no relay is available,
 * the one with the most connections counts as the first, because it may refuse only the mail of some, and all
 * others are probed. A relay that is stuck is passed over. 0 if no relay accepts anything now.
 */
export function countCapacity(relays: readonly Relay[]): number {
  const turns = inOrder(relays).filter((relay) => !relay.isStuck())
  const available = turns.findIndex((relay) => relay.isAvailable())
  const first = turns[available] ?? turns.toSorted((a, b) => b.capacity() - a.capacity())[0]
  if (first?.capacity() === 0) return 0
  const probed = available === -1 ? turns : turns.slice(0, available)
  const probes = probed.filter((relay) => relay !== first && relay.free() > 0).length
  const inProgress = relays.reduce((sum, relay) => sum + relay.inProgress(), 0)
  return inProgress + Math.max(first?.free() ?? 0, 0) + probes
}

/** How many connections one app may use. */
export const connectionsPerApp = (capacity: number): number => Math.max(1, Math.floor(capacity * appShare))

export type Budget = {
  /** How many emails to claim now. */
  readonly max: number
  /** How many emails of one app this worker may hold. */
  readonly perApp: number
}

export class ClaimBudget {
  readonly #claimed: ClaimedEmails<Attempt>
  /** How long the relays take for one email, as a moving average. */
  #averageMs = 1000

  constructor(claimed: ClaimedEmails<Attempt>) {
    this.#claimed = claimed
  }

  noteAttempt(tookMs: number): void {
    this.#averageMs += (Math.max(tookMs, 0.1) - this.#averageMs) / 16
  }

  of(capacity: number): Budget {
    const appConnections = connectionsPerApp(capacity)
    const perApp = 2 * appConnections + this.#ahead(appConnections)
    return { max: this.sendsSuspect() ? 0 : this.#max(capacity), perApp }
  }

  #max(capacity: number): number {
    const free = capacity - this.#claimed.sending
    const ready = this.#claimed.ready(connectionsPerApp(capacity)).length
    const ahead = this.#ahead(capacity)
    // Enough is waiting already. Claiming a few more now would cost a whole transaction.
    if (ready > Math.max(free, ahead / 2)) return 0
    return Math.min(2 * free + ahead - ready, claimMax)
  }

  /** How many emails to claim beyond the free connections, so that none is idle for `aheadMs`. */
  #ahead(connections: number): number {
    return Math.floor((connections * aheadMs) / this.#averageMs)
  }

  /** A suspect was claimed less than `aloneMs` ago, and is being sent. */
  sendsSuspect(): boolean {
    const now = performance.now()
    return this.#claimed.all().some(({ claim, claimedAt }) => claim.isSuspect && now - claimedAt.monotonicMs < aloneMs)
  }
}
