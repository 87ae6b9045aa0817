/**
 * The mail of a worker by transport, so that a transport that is slow or down holds up no mail of another:
 * each lane has its own connections and its own share of claims. A claim is for one lane. It names other
 * transports whose mail waits, which are asked next. It may not have seen all, so the lanes are also asked in
 * turns.
 */
import { isTestSide } from '../../domain/app/test-side.ts'
import type { Claim, Claimed } from '../../store/store.ts'
import type { Attempt } from '../deliver.ts'
import type { Transport } from '../transport.ts'
import { type Budget, ClaimBudget, connectionsPerApp, countCapacity } from './claim-budget.ts'
import { ClaimedEmails } from './claimed-emails.ts'

/** How often one lane is asked, whether or not its mail was seen. */
const turnMs = 250
/** After a claim that took nothing, though others had seen mail: its apps may hold all that they may. */
const askAgainMs = 50

export class Lane {
  readonly transport: Transport
  readonly claimed = new ClaimedEmails<Attempt>()
  readonly budget = new ClaimBudget(this.claimed)
  /**
   * False when the last claim took all there was, so a connection becoming free does not trigger another
   * claim.
   */
  mayBeMore = true
  /** When a claim took nothing, if the last one did. */
  fruitlessAtMs = Number.NEGATIVE_INFINITY
  /** Its transport was changed or deleted: it ends what it sends. */
  isOver = false

  constructor(transport: Transport) {
    this.transport = transport
  }

  capacity = (): number => (this.isOver ? 0 : countCapacity(this.transport.relays))

  get room(): Budget {
    return this.budget.of(this.capacity())
  }

  get isEmpty(): boolean {
    return this.claimed.all().length === 0
  }

  /**
   * The share of the connections that had nothing to send. One counts as idle if a single app could have used
   * it. Those of a stored transport never do: if it has one, its mail waits for that, not for this process.
   */
  get idleShare(): number {
    if (this.transport.name !== null) return 0
    return Math.max(0, 1 - this.claimed.sending / connectionsPerApp(this.capacity()))
  }

  /** Begins the next waiting email if a connection is free. */
  begin(): Attempt | undefined {
    const capacity = this.capacity()
    return this.claimed.sending < capacity ? this.claimed.begin(connectionsPerApp(capacity)) : undefined
  }
}

export class Lanes {
  readonly #lanes = new Map<string | null, Lane>()
  readonly #over = new Set<Lane>()
  /** To be asked now. */
  readonly #due = new Set<Lane>()
  /** Asked, or to be asked, since the round began. */
  readonly #asked = new Set<Lane>()
  /** The last one that had mail. */
  #busiest: Lane | undefined
  #turn = 0
  #turnAtMs = Number.NEGATIVE_INFINITY

  /** Also those that end. */
  all = (): Lane[] => [...this.#lanes.values(), ...this.#over]

  claimed = (): Attempt[] => this.all().flatMap(({ claimed }) => claimed.all())

  claimedBesides = (own: Lane): Attempt[] => this.all().flatMap((lane) => (lane === own ? [] : lane.claimed.all()))

  count = (what: 'sending' | 'storing'): number => this.all().reduce((sum, { claimed }) => sum + claimed[what], 0)

  /** A transport that is not the same object as before was changed. */
  set(transports: readonly Transport[]): void {
    for (const [name, lane] of this.#lanes) {
      if (transports.includes(lane.transport)) continue
      lane.isOver = true
      this.#over.add(lane)
      this.#lanes.delete(name)
    }
    for (const transport of transports)
      if (!this.#lanes.has(transport.name)) this.#lanes.set(transport.name, new Lane(transport))
  }

  /** Closes the relays of those that have ended. */
  closeEnded(): void {
    for (const lane of this.#over) {
      if (!lane.isEmpty) continue
      this.#over.delete(lane)
      const kept = this.all().flatMap(({ transport }) => transport.relays) // all share the inbox of dev mode
      for (const relay of lane.transport.relays) if (!kept.includes(relay)) relay.close()
    }
  }

  /** Mail may have come: one lane is asked, which learns of the others. */
  beginRound(): void {
    this.#asked.clear()
    const first = [this.#busiest, ...this.#lanes.values()].find((lane) => lane !== undefined && hasRoom(lane))
    if (first !== undefined) this.ask(first)
  }

  ask(lane: Lane): void {
    this.#asked.add(lane)
    this.#due.add(lane)
  }

  /** The next one to claim for; null once all were asked that may have mail. */
  next(): Lane | null {
    this.#takeTurn()
    for (const lane of this.#due) {
      this.#due.delete(lane)
      if (hasRoom(lane)) return lane
    }
    return null
  }

  /** One lane is asked, also if another always has mail. */
  #takeTurn(): void {
    const now = performance.now()
    if (this.#lanes.size === 1 || now < this.#turnAtMs + turnMs) return
    this.#turnAtMs = now
    this.#turn = (this.#turn + 1) % this.#lanes.size
    const lane = [...this.#lanes.values()][this.#turn]
    if (lane !== undefined) this.ask(lane)
  }

  /**
   * @param claimed `more`: another claim may find more mail of the lane now
   * @returns the transports for which mail waits, and that have no lane
   */
  noteClaim(lane: Lane, claimed: Pick<Claimed, 'elsewhere' | 'more'> & { readonly count: number }) {
    const { count, elsewhere, more } = claimed
    const now = performance.now()
    lane.fruitlessAtMs = count === 0 ? now : Number.NEGATIVE_INFINITY
    if (count > 0) this.#busiest = lane
    const others = elsewhere.flatMap((name) => this.#lanes.get(name) ?? [])
    // Mail may have come since it was asked; but it may also have mail that it cannot take.
    const mayAsk = (other: Lane) => !this.#asked.has(other) || (count > 0 && now > other.fruitlessAtMs + askAgainMs)
    for (const other of others) if (mayAsk(other)) this.ask(other)
    if (more) this.ask(lane)
    return elsewhere.filter((name) => !this.#lanes.has(name))
  }
}

/** One without room is asked when it has some again. */
function hasRoom(lane: Lane): boolean {
  const { max } = lane.room
  if (max <= 0) lane.mayBeMore = true
  return max > 0
}

/** How long the oldest of the emails that were never tried had waited in the store. Test mail may wait. */
export const longestWaitMs = (claims: readonly Claim[]): number =>
  Math.max(0, ...claims.map(({ ageMs, appId, attempt }) => (attempt === 1 && !isTestSide(appId) ? ageMs : 0)))
