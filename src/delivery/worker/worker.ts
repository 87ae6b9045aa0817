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
import type { Claim, Claimed, Store } from '../../store/store.ts'
import { loadLanguages } from '../../templates/locales/choose-language.ts'
import { type Attempt, type DeliverDeps, deliver } from '../deliver.ts'
import { MessageComposer } from '../message/compose-message.ts'
import { Backpressure } from './backpressure.ts'
import { aloneMs, ClaimBudget, connectionsPerApp, countCapacity } from './claim-budget.ts'
import { ClaimedEmails, isSameLease } from './claimed-emails.ts'
import { OutcomeWriter, type OutcomeWriterDeps } from './outcome-writer.ts'
import { Signal } from './signal.ts'

export type WorkerDeps = Omit<DeliverDeps, 'composer'> & {
  readonly store: Pick<Store, 'claimDue' | 'renewLeases' | 'recordOutcome' | 'strikeRefused'>
  readonly emit: Emit
  readonly onFailed: OutcomeWriterDeps['onFailed']
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
  readonly #deps: WorkerDeps & DeliverDeps
  /** Requests ask it whether they may go on. */
  readonly backpressure: Backpressure
  readonly #signal = new Signal()
  readonly #claimed = new ClaimedEmails<Attempt>()
  readonly #budget = new ClaimBudget(this.#claimed)
  readonly #outcomes: OutcomeWriter
  #mode: Mode = 'running'
  #yieldUntilMs = 0
  #mayYieldAtMs = 0
  /**
   * The worker has yielded and still holds mail: it takes a suspect nevertheless, so that none waits for
   * ever.
   */
  #takeSuspect = false
  #standby = false
  #deathIsKnown = true
  /**
   * False when the last claim took all there was, so a connection becoming free does not trigger another
   * claim.
   */
  #mayBeMore = true
  #loop: Promise<void> | null = null

  constructor(deps: WorkerDeps) {
    loadLanguages()
    this.#deps = { ...deps, composer: new MessageComposer() }
    this.backpressure = new Backpressure({
      onChange: (active) => deps.emit({ kind: 'backpressure_changed', active }),
    })
    this.#outcomes = new OutcomeWriter({ ...deps, onFailure: () => this.#setMode('blocked') })
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Mail was queued. */
  wake(): void {
    this.#signal.notify()
  }

  /** `stopping` is final. */
  #setMode(mode: Mode): void {
    if (this.#mode !== 'stopping') this.#mode = mode
  }

  async #run(): Promise<void> {
    const { renewEveryMs = usualRenewEveryMs } = this.#deps
    const renewal = setInterval(() => void this.#renewLeases(), renewEveryMs)
    while (this.#mode !== 'stopping') {
      if (this.#mode === 'blocked') await this.#unblock()
      else if (this.#capacity() === 0) await this.#releaseWaiting('the relays are unavailable')
      if (this.#mode === 'yielding' && performance.now() >= this.#yieldUntilMs) this.#endYielding()
      const claimedSome = this.#mode === 'running' && (await this.#claim())
      if (!claimedSome) await this.#signal.wait(this.#pauseMs())
    }
    clearInterval(renewal)
  }

  #pauseMs(): number {
    if (this.#mode === 'blocked') return storeRetryMs
    if (this.#mode === 'yielding') return Math.max(1, this.#yieldUntilMs - performance.now())
    return this.#budget.sendsSuspect() ? aloneMs : pollMs
  }

  /** Writes the kept outcomes and renews the leases. If a write fails again, the mode is `blocked` again. */
  async #unblock(): Promise<void> {
    this.#setMode('running')
    await this.#outcomes.retry()
    await this.#renewLeases()
    this.#startAttempts()
  }

  #capacity = (): number => countCapacity(this.#deps.relays)

  /** True if another claim may find more now. */
  async #claim(): Promise<boolean> {
    this.#mayBeMore = true
    const { max, perApp } = this.#budget.of(this.#capacity())
    if (max <= 0) return false
    const leases = this.#claimed.all().map(({ claim }) => toLease(claim))
    const takeSuspect = this.#takeSuspect
    const claimedAt = momentNow()
    this.backpressure.noteClaimBegins()
    try {
      const claimed = await this.#deps.store.claimDue({ max, perApp, leases, takeSuspect })
      const { claims, apps, areLeasesValid, more, suspects } = claimed
      this.#outcomes.noteSuccess()
      this.#takeSuspect = false
      this.#report(claimed, performance.now() - claimedAt.monotonicMs)
      const attempts = claims.map((claim) => {
        return { claim, app: apps.get(claim.appId) as App, claimedAt, leasedAt: claimedAt, areLeasesValid }
      })
      this.#noteClaims(claims)
      this.#claimed.add(attempts)
      if (suspects) this.#yield()
      this.#mayBeMore = more || suspects || this.#claimed.mostOfOneApp() >= perApp
      this.#startAttempts()
      return more
    } catch (error) {
      this.backpressure.noteClaim(0, 0)
      this.#outcomes.noteFailure(error)
      return false
    }
  }

  #report({ claims, deathIsKnown, ended, lost, standby }: Claimed, tookMs: number): void {
    const { emit } = this.#deps
    if (!standby) emit({ kind: 'mail_claimed', count: claims.length, tookMs })
    if (standby !== this.#standby) emit({ kind: 'standby_changed', standby })
    this.#standby = standby
    if (deathIsKnown !== this.#deathIsKnown) emit({ kind: 'session_changed', available: deathIsKnown })
    this.#deathIsKnown = deathIsKnown
    if (lost.length > 0) emit({ kind: 'leases_taken_back', lost })
    if (ended.length > 0) emit({ kind: 'emails_ended', ended })
  }

  /** A connection counts as idle if even a single app could have used it. */
  #noteClaims(claims: readonly Claim[]): void {
    const waitedMs = Math.max(0, ...claims.map(({ attempt, ageMs }) => (attempt === 1 ? ageMs : 0)))
    const usable = connectionsPerApp(this.#capacity())
    this.backpressure.noteClaim(waitedMs, Math.max(0, 1 - this.#claimed.sending / usable))
  }

  #yield(): void {
    const now = performance.now()
    // `blocked` ends only when all is written. A worker that holds nothing takes a suspect with its next
    // claim.
    if (this.#mode !== 'running' || this.#claimed.all().length === 0 || now < this.#mayYieldAtMs) return
    this.#yieldUntilMs = now + yieldMs
    this.#setMode('yielding')
  }

  #endYielding(): void {
    this.#takeSuspect = true
    this.#mayYieldAtMs = performance.now() + yieldEveryMs
    this.#setMode('running')
  }

  /** Nothing may be sent while an outcome could not be written; what waits at the end is given back. */
  #maySend = (): boolean => (this.#mode === 'running' || this.#mode === 'yielding') && this.#outcomes.kept === 0

  /** Begins waiting emails while connections are free. */
  #startAttempts(): void {
    const capacity = this.#capacity()
    while (this.#claimed.sending < capacity && this.#claimed.storing < storingMax && this.#maySend()) {
      const attempt = this.#claimed.begin(connectionsPerApp(capacity))
      if (attempt === undefined) return
      void this.#attempt(attempt)
    }
  }

  /** The connection goes on to the next email while this one's outcome is being stored. */
  async #attempt(attempt: Attempt): Promise<void> {
    const begunAtMs = performance.now()
    const outcome = await deliver(this.#deps, attempt).catch((error: unknown): DeliveryOutcome => {
      this.#deps.emit({ kind: 'bug', doing: `rendering or sending ${attempt.claim.emailId}`, error })
      const lack = describeLack(error)
      if (lack !== null) return { kind: 'unattempted', reply: noReply(lack), relay: null, waitMs: lackWaitMs }
      const reply = noReply('internal error, see the log')
      return { kind: 'deferred', reply, relay: null, ambiguous: false, waitMs: internalErrorWaitMs }
    })
    const endedAtMs = performance.now()
    const tookMs = endedAtMs - begunAtMs
    if (outcome.kind !== 'unattempted') this.#budget.noteAttempt(tookMs)
    this.#claimed.markStoring(attempt)
    this.#startAttempts()
    if (this.#mayBeMore) this.#signal.notify()
    await this.#outcomes.write({ attempt, outcome, endedAtMs, tookMs })
    if (isEnd(outcome) && this.#outcomes.kept === 0) this.backpressure.noteEnd()
    this.#claimed.remove(attempt)
    if (this.#mode === 'yielding' && this.#claimed.all().length === 0) this.#endYielding()
    this.#startAttempts()
    // An email that was given back or deferred may be due again.
    if (this.#mayBeMore || outcome.kind !== 'delivered') this.#signal.notify()
  }

  async #releaseWaiting(why: string): Promise<void> {
    const outcome: DeliveryOutcome = { kind: 'unattempted', relay: null, reply: noReply(why), waitMs: 0 }
    const endedAtMs = performance.now()
    const results = this.#claimed.release().map((attempt) => ({ attempt, outcome, endedAtMs, tookMs: 0 }))
    await Promise.all(results.map((result) => this.#outcomes.write(result)))
  }

  async #renewLeases(): Promise<void> {
    const attempts = this.#claimed.all()
    if (attempts.length === 0) return
    const askedAt = momentNow()
    try {
      const lost = await this.#deps.store.renewLeases(attempts.map(({ claim }) => toLease(claim)))
      for (const attempt of attempts) {
        const isLost = lost.some((lease) => isSameLease(lease, attempt.claim))
        attempt.leasedAt = isLost ? null : askedAt
      }
      this.#claimed.removeWaiting(lost)
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
    await this.#releaseWaiting('the worker stopped')
    await this.#untilIdle(graceMs)
    for (const relay of this.#deps.relays) relay.close()
    await this.#untilIdle(abortMs)
    await this.#outcomes.whenFollowed()
    const count = this.#unended()
    if (count > 0) this.#deps.emit({ kind: 'attempts_unrecorded', count })
  }

  #unended = (): number => this.#claimed.sending + this.#claimed.storing + this.#outcomes.kept

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
