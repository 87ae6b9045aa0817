/**
 * Takes due mail from the store to the relays. What it has in hand is bounded: what waits here is
 * what the connections send within some milliseconds, no app holds more than three quarters of
 * them, and an email that lost several leases is tried while nothing else is in hand.
 *
 * It never sends while an outcome cannot be stored: a claim is itself a durable write, only so many
 * outcomes are on their way to the store at once, and after a failed write nothing more is dialled
 * until the results in hand are written.
 */
import type { App } from '../../domain/app/app.ts'
import type { DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import { type Claim, leaseMs, type Store, StoreUnavailable } from '../../store/store.ts'
import { type Attempt, type DeliverDeps, deliver } from '../deliver.ts'
import { ClaimedEmails } from './claimed-emails.ts'
import { Signal } from './signal.ts'

export type WorkerDeps = DeliverDeps & {
  readonly store: Pick<Store, 'claimDue' | 'renewLeases' | 'recordOutcome'>
  /** One outcome as it was recorded; `sinceAcceptedMs` by the store's clock. */
  readonly onOutcome: (report: { claim: Claim; outcome: DeliveryOutcome; sinceAcceptedMs: number }) => void
  /** What an operator should hear of: lost leases, a store that cannot write, a bug. */
  readonly onTrouble: (message: string, error?: unknown) => void
}

type Result = { attempt: Attempt; outcome: DeliveryOutcome }

const pollMs = 250
const storeRetryMs = 500
const renewEveryMs = 20_000
const claimMax = 256
/** How long what is claimed may wait here for a connection: a prefetched buffer is a second queue. */
const aheadMs = 10
/** Sent, and not on record yet: what could be sent twice if this process died just now. */
const storingMax = 64
const aloneMs = 10_000
const drainMs = 10_000
const drainEveryMs = 30_000
const endMs = 5_000

export class Worker {
  readonly #deps: WorkerDeps
  readonly #signal = new Signal()
  readonly #inHand = new ClaimedEmails<Attempt>()
  readonly #unstored = new Set<Result>()
  readonly #pace = new Pace()
  /** False after a claim that found nothing: then a free connection is no reason for another. */
  #mayBeMore = true
  #storeFailed = false
  /** Until a claim succeeds again: one line for one outage. */
  #storeTroubleTold = false
  #stopping = false
  #drainUntilMs = 0
  #running: Promise<void> | null = null

  constructor(deps: WorkerDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#running = this.#run()
  }

  /** A committed email is waiting. */
  wake(): void {
    this.#signal.ring()
  }

  async #run(): Promise<void> {
    const renewal = setInterval(() => void this.#renew(), renewEveryMs)
    while (!this.#stopping) {
      if (this.#storeFailed) await this.#retryUnstored()
      else if (this.#capacity() === 0) await this.#releaseWaiting('the relays are unavailable')
      const claimed = await this.#claim()
      if (!claimed) await this.#signal.wait(this.#storeFailed ? storeRetryMs : pollMs)
    }
    clearInterval(renewal)
  }

  /** Of the first relay that is well, and the probes of those before it. */
  #capacity(): number {
    let capacity = 0
    for (const relay of this.#deps.relays) {
      capacity += relay.capacity()
      if (!relay.isOpen()) break
    }
    return capacity
  }

  get #perApp(): number {
    return Math.max(1, Math.floor(this.#capacity() * 0.75))
  }

  /** How many more to claim: for the free connections, and ahead for the busy ones, less what waits for them. */
  get #room(): number {
    const now = performance.now()
    if (this.#storeFailed || now < this.#drainUntilMs) return 0
    // An email tried alone has shown after a while that it does not kill its worker.
    const alone = this.#inHand
      .all()
      .some(({ claim, claimedAtMs }) => claim.alone && now - claimedAtMs < aloneMs)
    if (alone) return 0
    const capacity = this.#capacity()
    const free = capacity - this.#inHand.active
    const ready = this.#inHand.ready(this.#perApp).length
    const ahead = this.#ahead(capacity)
    // While the connections have enough to do, a few at a time would cost a transaction each.
    if (ready > Math.max(free, ahead / 2)) return 0
    return Math.min(2 * free + ahead - ready, claimMax)
  }

  /** What so many connections send within `aheadMs`: it waits here, and nobody else's mail waits longer for it. */
  #ahead = (connections: number): number => Math.floor((connections * aheadMs) / this.#pace.averageMs)

  /** True where something was claimed, so that there may be more. */
  async #claim(): Promise<boolean> {
    const max = this.#room
    const perApp = 2 * this.#perApp + this.#ahead(this.#perApp)
    this.#mayBeMore = true
    if (max <= 0) return false
    const inHand = this.#inHand
      .all()
      .map(({ claim: { emailId, fence, appId } }) => ({ emailId, fence, appId }))
    const claimedAtMs = performance.now()
    try {
      const claimed = await this.#deps.store.claimDue({ max, perApp, leases: inHand })
      this.#storeTroubleTold = false
      const attempts = claimed.claims.map((claim) => ({
        claim,
        app: claimed.apps.get(claim.appId) as App,
        claimedAtMs,
        leasedUntilMs: claimedAtMs + leaseMs,
      }))
      this.#inHand.add(attempts)
      if (claimed.suspects) this.#drain()
      this.#mayBeMore = attempts.length > 0 || claimed.suspects || this.#inHand.mostOfOneApp() >= perApp
      this.#startWaiting()
      return attempts.length > 0
    } catch (error) {
      this.#noteStoreFailure(error)
      return false
    }
  }

  // Suspects are handed out to an idle worker; a busy one makes room for them now and then.
  #drain(): void {
    const now = performance.now()
    if (now > this.#drainUntilMs + drainEveryMs) this.#drainUntilMs = now + drainMs
  }

  /** Nothing is sent while a result in hand could not be written. */
  #mustWait = (): boolean => this.#storeFailed || this.#unstored.size > 0

  #startWaiting(): void {
    const capacity = this.#capacity()
    while (this.#inHand.active < capacity && this.#inHand.storing < storingMax && !this.#mustWait()) {
      const attempt = this.#inHand.begin(this.#perApp)
      if (attempt === undefined) return
      void this.#attempt(attempt)
    }
  }

  async #attempt(attempt: Attempt): Promise<void> {
    const begunAtMs = performance.now()
    const outcome = await deliver(this.#deps, attempt).catch((error: unknown): DeliveryOutcome => {
      this.#deps.onTrouble('an email could not be rendered or sent: a bug', error)
      const waitMs = 60_000
      return { kind: 'deferred', reply: 'internal error, see the log', relay: '-', ambiguous: false, waitMs }
    })
    if (outcome.kind !== 'unattempted') this.#pace.note(performance.now() - begunAtMs)
    this.#inHand.end(attempt)
    this.#startWaiting()
    if (this.#mayBeMore) this.#signal.ring()
    await this.#store({ attempt, outcome })
    this.#inHand.drop(attempt)
    if (this.#inHand.all().length === 0) this.#drainUntilMs = Math.min(this.#drainUntilMs, performance.now())
    this.#startWaiting()
    // What was given back is due again.
    if (this.#mayBeMore || this.#stopping || outcome.kind !== 'delivered') this.#signal.ring()
  }

  async #store(result: Result): Promise<void> {
    const { attempt, outcome } = result
    const { claim } = attempt
    try {
      const recorded = await this.#deps.store.recordOutcome(claim, outcome)
      this.#unstored.delete(result)
      if (!recorded)
        return this.#deps.onTrouble(
          `the lease of ${claim.emailId} was lost, so its outcome was not recorded; or it was, and only the answer was lost`,
        )
      const sinceAcceptedMs = claim.ageMs + performance.now() - attempt.claimedAtMs
      this.#deps.onOutcome({ claim, outcome, sinceAcceptedMs })
    } catch (error) {
      this.#unstored.add(result)
      this.#noteStoreFailure(error)
    }
  }

  #noteStoreFailure(error: unknown): void {
    if (!this.#storeTroubleTold)
      this.#deps.onTrouble('the store cannot write: sending is held until it can', error)
    this.#storeTroubleTold = true
    this.#storeFailed = true
    if (!(error instanceof StoreUnavailable))
      this.#deps.onTrouble('the store failed unexpectedly: a bug', error)
  }

  /** Writes the results in hand; only when all are written does claiming go on. */
  async #retryUnstored(): Promise<void> {
    this.#storeFailed = false
    await Promise.all([...this.#unstored].map((result) => this.#store(result)))
    if (!this.#storeFailed) this.#startWaiting()
  }

  async #releaseWaiting(reply: string): Promise<void> {
    const outcome: DeliveryOutcome = { kind: 'unattempted', reply, waitMs: 0 }
    await Promise.all(this.#inHand.release().map((attempt) => this.#store({ attempt, outcome })))
  }

  async #renew(): Promise<void> {
    const inHand = this.#inHand.all()
    if (inHand.length === 0) return
    const askedAtMs = performance.now()
    try {
      const lost = await this.#deps.store.renewLeases(
        inHand.map(({ claim: { emailId, fence } }) => ({ emailId, fence })),
      )
      for (const attempt of inHand)
        if (!lost.includes(attempt.claim.emailId)) attempt.leasedUntilMs = askedAtMs + leaseMs
      this.#inHand.forget(lost)
    } catch (error) {
      this.#noteStoreFailure(error)
    }
  }

  /**
   * Claims nothing more, gives back what has not begun, lets the rest end for up to `graceMs`, and
   * then has the relays give it up. When it resolves, every outcome that can be is on record.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true
    this.#signal.ring()
    await this.#running
    await this.#releaseWaiting('the worker stopped')
    await this.#untilIdle(graceMs)
    for (const relay of this.#deps.relays) relay.close()
    await this.#untilIdle(endMs)
    const unended = this.#inHand.active + this.#inHand.storing + this.#unstored.size
    if (unended > 0)
      this.#deps.onTrouble(`${unended} attempts are without a record at the end: they may be made again`)
  }

  async #untilIdle(withinMs: number): Promise<void> {
    const untilMs = performance.now() + withinMs
    const busy = () => this.#inHand.active + this.#inHand.storing + this.#unstored.size > 0
    while (busy() && performance.now() < untilMs) {
      if (this.#unstored.size > 0) await this.#retryUnstored()
      await this.#signal.wait(50)
    }
  }
}

/** How long the relays take for one email, of late. */
class Pace {
  averageMs = 1000

  note(ms: number): void {
    this.averageMs += (Math.max(ms, 0.1) - this.averageMs) / 16
  }
}
