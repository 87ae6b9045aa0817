/**
 * Takes due mail from the store to the relays. The loop has four modes, which docs/delivery-states.md
 * draws:
 *
 *   running   claims and sends
 *   blocked   a write to the store failed: nothing is sent until every kept outcome is written
 *   yielding  suspects wait: claims nothing until it holds nothing, for 100 ms at most
 *   stopping  claims nothing; ends what has begun
 *
 * The worker never sends what it cannot record: a claim is a durable write, the number of outcomes
 * being stored is bounded, and a failed write stops sending.
 */
import type { App } from '../../domain/app/app.ts'
import type { DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import { noReply } from '../../domain/delivery/reply.ts'
import { describeLack } from '../../domain/machine-faults.ts'
import type { Emit } from '../../observe/events.ts'
import { momentNow } from '../../store/shared/clock.ts'
import type { Store } from '../../store/store.ts'
import { loadLanguages } from '../../templates/locales/choose-language.ts'
import { type Attempt, type DeliverDeps, deliver } from '../deliver.ts'
import { MessageComposer } from '../message/compose-message.ts'
import type { Transport } from '../transport.ts'
import { Backpressure } from './backpressure.ts'
import { aloneMs } from './claim-budget.ts'
import { ClaimEvents } from './claim-events.ts'
import { isSameLease } from './claimed-emails.ts'
import { type Lane, Lanes, longestWaitMs } from './lanes.ts'
import { OutcomeWriter, type OutcomeWriterDeps } from './outcome-writer.ts'
import { Signal } from './signal.ts'

export type WorkerDeps = Omit<DeliverDeps, 'composer' | 'relays' | 'signing'> & {
  readonly transports: readonly Transport[]
  readonly store: Pick<Store, 'claimDue' | 'renewLeases' | 'recordOutcome' | 'strikeRefused'>
  readonly emit: Emit
  /** Mail waits for transports that the worker does not have. */
  readonly onUnknownTransports: (names: readonly (string | null)[]) => void
  readonly onTrouble: OutcomeWriterDeps['onTrouble']
  /** How often leases are renewed (20 s). */
  readonly renewEveryMs?: number
}

type Mode = 'running' | 'blocked' | 'yielding' | 'stopping'

const pollMs = 250
const storeRetryMs = 500
const usualRenewEveryMs = 20_000
/** Outcomes being stored: these emails could be sent twice if the process died now. */
const storingMax = 64
const yieldMs = 100
/** Between two times of yielding, so that many suspects do not slow ordinary mail. */
const yieldEveryMs = 1000
const abortMs = 5_000
const internalErrorWaitMs = 60_000
/** After the process lacked what every email needs. */
const lackWaitMs = 1000

export class Worker {
  readonly #deps: WorkerDeps & Pick<DeliverDeps, 'composer'>
  /** Requests ask it whether they may go on. */
  readonly backpressure: Backpressure
  readonly #signal = new Signal()
  readonly #lanes = new Lanes()
  readonly #outcomes: OutcomeWriter
  readonly #events: ClaimEvents
  #mode: Mode = 'running'
  #yieldUntilMs = 0
  #mayYieldAtMs = 0
  /** The worker yields to a suspect of this lane. */
  #suspectLane: Lane | null = null
  /**
   * The worker has yielded and still holds mail: it takes a suspect nevertheless, so that none waits for
   * ever.
   */
  #takeSuspect = false
  #loop: Promise<void> | null = null

  constructor(deps: WorkerDeps) {
    loadLanguages()
    this.#deps = { ...deps, composer: new MessageComposer() }
    this.#lanes.set(deps.transports)
    this.#events = new ClaimEvents(deps.emit)
    this.backpressure = new Backpressure({
      onChange: (active) => deps.emit({ kind: 'backpressure_changed', active }),
    })
    this.#outcomes = new OutcomeWriter({ ...deps, onFailure: () => this.#setMode('blocked') })
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Mail was queued. */
  wake = (): void => this.#signal.notify()

  /** Those that are not the same objects as before are new, and the others end what they send. */
  setTransports(transports: readonly Transport[]): void {
    this.#lanes.set(transports)
    this.#signal.notify()
  }

  /** `stopping` is final. */
  #setMode(mode: Mode): void {
    if (this.#mode !== 'stopping') this.#mode = mode
  }

  async #run(): Promise<void> {
    const { renewEveryMs = usualRenewEveryMs } = this.#deps
    const renewal = setInterval(() => void this.#renewLeases(), renewEveryMs)
    this.#lanes.beginRound()
    while (this.#mode !== 'stopping') {
      if (this.#mode === 'blocked') await this.#unblock()
      else await this.#releaseUnsendable()
      this.#lanes.closeEnded()
      if (this.#mode === 'yielding' && performance.now() >= this.#yieldUntilMs) this.#endYielding()
      this.#startAttempts() // a probe may be due, or the order of the relays may have changed
      const lane = this.#mode === 'running' && !this.#sendsSuspect() ? this.#lanes.next() : null
      if (lane !== null) await this.#claim(lane)
      else {
        await this.#signal.wait(this.#pauseMs())
        this.#lanes.beginRound()
      }
    }
    clearInterval(renewal)
  }

  #pauseMs(): number {
    if (this.#mode === 'blocked') return storeRetryMs
    if (this.#mode === 'yielding') return Math.max(1, this.#yieldUntilMs - performance.now())
    return this.#sendsSuspect() ? aloneMs : pollMs
  }

  /** Writes the kept outcomes and renews the leases. If a write fails again, the mode is `blocked` again. */
  async #unblock(): Promise<void> {
    this.#setMode('running')
    await this.#outcomes.retry()
    await this.#renewLeases()
    this.#startAttempts()
  }

  #sendsSuspect = (): boolean => this.#lanes.all().some(({ budget }) => budget.sendsSuspect())

  async #claim(lane: Lane): Promise<void> {
    lane.mayBeMore = true
    const { max, perApp } = lane.room
    const leases = lane.claimed.all().map(({ claim }) => toLease(claim))
    const others = this.#lanes.claimedBesides(lane).map(({ claim }) => toLease(claim))
    const takeSuspect = this.#takeSuspect && lane === this.#suspectLane
    const transport = lane.transport.name
    const claimedAt = momentNow()
    this.backpressure.noteClaimBegins()
    try {
      const claimed = await this.#deps.store.claimDue({ transport, max, perApp, leases, others, takeSuspect })
      const { claims, apps, areLeasesValid, elsewhere, more, suspects } = claimed
      this.#outcomes.noteSuccess()
      if (takeSuspect) this.#takeSuspect = false
      this.#events.report(claimed, performance.now() - claimedAt.monotonicMs)
      const attempts = claims.map((claim) => {
        return { claim, app: apps.get(claim.appId) as App, claimedAt, leasedAt: claimedAt, areLeasesValid }
      })
      this.backpressure.noteClaim(longestWaitMs(claims), lane.idleShare)
      lane.claimed.add(attempts)
      if (suspects) this.#yield(lane)
      lane.mayBeMore = more || suspects || lane.claimed.mostOfOneApp() >= perApp
      const unknown = this.#lanes.noteClaim(lane, { count: claims.length, elsewhere, more })
      if (unknown.length > 0) this.#deps.onUnknownTransports(unknown)
      this.#startAttempts()
    } catch (error) {
      this.backpressure.noteClaim(0, 0)
      this.#outcomes.noteFailure(error)
    }
  }

  #yield(lane: Lane): void {
    const now = performance.now()
    // `blocked` ends only when all is written. A worker that holds nothing takes a suspect with its next
    // claim.
    if (this.#mode !== 'running' || this.#lanes.claimed().length === 0 || now < this.#mayYieldAtMs) return
    this.#suspectLane = lane
    this.#yieldUntilMs = now + yieldMs
    this.#setMode('yielding')
  }

  #endYielding(): void {
    this.#takeSuspect = true
    if (this.#suspectLane !== null) this.#lanes.ask(this.#suspectLane)
    this.#mayYieldAtMs = performance.now() + yieldEveryMs
    this.#setMode('running')
  }

  /** Nothing may be sent while an outcome could not be written; what waits at the end is given back. */
  #maySend = (): boolean => (this.#mode === 'running' || this.#mode === 'yielding') && this.#outcomes.kept === 0

  /** Begins waiting emails while connections are free. */
  #startAttempts(): void {
    for (const lane of this.#lanes.all())
      while (this.#lanes.count('storing') < storingMax && this.#maySend()) {
        const attempt = lane.begin()
        if (attempt === undefined) break
        void this.#attempt(lane, attempt)
      }
  }

  /** The connection goes on to the next email while this one's outcome is being stored. */
  async #attempt(lane: Lane, attempt: Attempt): Promise<void> {
    const begunAtMs = performance.now()
    const outcome = await deliver({ ...this.#deps, ...lane.transport }, attempt).catch(
      (error: unknown): DeliveryOutcome => {
        this.#deps.emit({ kind: 'bug', doing: `rendering or sending ${attempt.claim.emailId}`, error })
        const lack = describeLack(error)
        if (lack !== null) return { kind: 'unattempted', reply: noReply(lack), relay: null, waitMs: lackWaitMs }
        const reply = noReply('internal error, see the log')
        return { kind: 'deferred', reply, relay: null, ambiguous: false, waitMs: internalErrorWaitMs }
      },
    )
    const endedAtMs = performance.now()
    const tookMs = endedAtMs - begunAtMs
    if (outcome.kind !== 'unattempted') lane.budget.noteAttempt(tookMs)
    lane.claimed.markStoring(attempt)
    this.#startAttempts()
    if (lane.mayBeMore) this.#wake(lane)
    await this.#outcomes.write({ attempt, outcome, endedAtMs, tookMs })
    if (isEnd(outcome) && this.#outcomes.kept === 0) this.backpressure.noteEnd()
    lane.claimed.remove(attempt)
    if (this.#mode === 'yielding' && this.#lanes.claimed().length === 0) this.#endYielding()
    this.#startAttempts()
    // An email that was given back or deferred may be due again.
    if (lane.mayBeMore || outcome.kind !== 'delivered') this.#wake(lane)
  }

  #wake(lane: Lane): void {
    this.#lanes.ask(lane)
    this.#signal.notify()
  }

  async #releaseUnsendable(): Promise<void> {
    for (const lane of this.#lanes.all())
      if (lane.capacity() === 0)
        await this.#releaseWaiting(lane, lane.isOver ? 'its transport was changed' : 'the relays are unavailable')
  }

  async #releaseWaiting(lane: Lane, why: string): Promise<void> {
    const outcome: DeliveryOutcome = { kind: 'unattempted', relay: null, reply: noReply(why), waitMs: 0 }
    const endedAtMs = performance.now()
    const results = lane.claimed.release().map((attempt) => ({ attempt, outcome, endedAtMs, tookMs: 0 }))
    await Promise.all(results.map((result) => this.#outcomes.write(result)))
  }

  async #renewLeases(): Promise<void> {
    const attempts = this.#lanes.claimed()
    if (attempts.length === 0) return
    const askedAt = momentNow()
    try {
      const lost = await this.#deps.store.renewLeases(attempts.map(({ claim }) => toLease(claim)))
      for (const attempt of attempts) {
        const isLost = lost.some((lease) => isSameLease(lease, attempt.claim))
        attempt.leasedAt = isLost ? null : askedAt
      }
      for (const { claimed } of this.#lanes.all()) claimed.removeWaiting(lost)
    } catch (error) {
      this.#outcomes.noteFailure(error)
    }
  }

  /**
   * Gives back what has not begun, lets the rest end for up to `graceMs`, and then aborts it. When it
   * resolves, every outcome that can be recorded is on record.
   */
  async stop(graceMs: number): Promise<void> {
    this.#setMode('stopping')
    this.#signal.notify()
    await this.#loop
    for (const lane of this.#lanes.all()) await this.#releaseWaiting(lane, 'the worker stopped')
    await this.#untilIdle(graceMs)
    for (const { transport } of this.#lanes.all()) for (const relay of transport.relays) relay.close()
    await this.#untilIdle(abortMs)
    await this.#outcomes.whenFollowed()
    const count = this.#unended()
    if (count > 0) this.#deps.emit({ kind: 'attempts_unrecorded', count })
  }

  #unended = (): number => this.#lanes.count('sending') + this.#lanes.count('storing') + this.#outcomes.kept

  async #untilIdle(withinMs: number): Promise<void> {
    const untilMs = performance.now() + withinMs
    while (this.#unended() > 0 && performance.now() < untilMs) {
      if (this.#outcomes.kept > 0) await this.#outcomes.retry()
      await this.#signal.wait(50)
    }
  }
}

const isEnd = ({ kind }: DeliveryOutcome): boolean => kind !== 'deferred' && kind !== 'unattempted'

const toLease = ({ emailId, fence, appId }: Attempt['claim']) => ({ emailId, fence, appId })
