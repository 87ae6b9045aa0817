/**
 * Writes outcomes to the store. An outcome that cannot be written is kept and written again later:
 * nothing new may be sent while one is kept.
 */
import { isTestSide } from '../../domain/app/test-side.ts'
import { causeOf } from '../../domain/delivery/failure-cause.ts'
import type { DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import type { Reply } from '../../domain/delivery/reply.ts'
import { classifyDestination, refusesMailbox } from '../../domain/delivery/suppression.ts'
import type { WebhookEvent, WebhookFacts } from '../../domain/webhooks/webhook.ts'
import type { Emit } from '../../observe/events.ts'
import { readTraceId } from '../../observe/tracing.ts'
import { type Claim, type Store, StoreUnavailable } from '../../store/store.ts'
import type { Attempt } from '../deliver.ts'

export type Result = {
  readonly attempt: Attempt
  readonly outcome: DeliveryOutcome
  /** When the attempt ended, on the clock of `performance.now()`. Its record may be written much later. */
  readonly endedAtMs: number
  /** How long the attempt took; 0 if it was not made. */
  readonly tookMs: number
}

export type OutcomeWriterDeps = {
  readonly store: Pick<Store, 'recordOutcome' | 'strikeRefused'>
  readonly emit: Emit
  /** An email failed, or so it was simulated, of an app that is sent webhooks. */
  readonly onTrouble: (event: WebhookEvent, claim: Claim, facts: WebhookFacts) => Promise<void>
  /** A write to the store failed. */
  readonly onFailure: () => void
}

type Trouble = Extract<DeliveryOutcome, { readonly kind: 'failed' | 'simulated' }>

/** Others are dropped: when so many come at once, few of them would count. */
const strikesMax = 8

export class OutcomeWriter {
  readonly #deps: OutcomeWriterDeps
  readonly #kept = new Set<Result>()
  /** One event for one outage, until a claim succeeds. */
  #reported = false
  /** Strikes that are being written. */
  #striking = 0
  readonly #following = new Set<Promise<void>>()

  constructor(deps: OutcomeWriterDeps) {
    this.#deps = deps
  }

  /** How many outcomes could not be written yet. */
  get kept(): number {
    return this.#kept.size
  }

  /** Never rejects: a result that cannot be written is kept. */
  async write(result: Result): Promise<void> {
    const { attempt, outcome, endedAtMs, tookMs } = result
    const { claim, claimedAt } = attempt
    const { emit, store } = this.#deps
    try {
      const recorded = await store.recordOutcome(claim, outcome)
      this.#kept.delete(result)
      const { emailId, appId, type } = claim
      if (!recorded) return emit({ kind: 'outcome_unconfirmed', emailId })
      const sinceAcceptedMs = claim.ageMs + endedAtMs - claimedAt.monotonicMs
      const record = {
        emailId,
        appId,
        type,
        attempt: claim.attempt,
        outcome,
        sinceAcceptedMs,
        tookMs,
        traceId: readTraceId(claim.traceparent),
      }
      emit({ kind: 'attempt_recorded', ...record })
      if (outcome.kind === 'failed' || outcome.kind === 'simulated') {
        const following = this.#follow(attempt, outcome).finally(() => this.#following.delete(following))
        this.#following.add(following)
      }
    } catch (error) {
      this.#kept.add(result)
      this.noteFailure(error)
    }
  }

  /** After the outcome, and nothing waits for it. */
  async #follow({ app, claim }: Attempt, outcome: Trouble): Promise<void> {
    const isReal = !isTestSide(claim.appId)
    const until = isReal && refusesMailbox(outcome) ? await this.#strike(claim, outcome.reply) : null
    if (app.settings.webhookUrl === undefined) return
    const cause = outcome.reason === 'refused_by_relay' ? causeOf(outcome.reply) : outcome.reason
    const event = `email.${outcome.kind === 'simulated' ? outcome.state : outcome.kind}` as const
    await this.#deps.onTrouble(event, claim, {
      ...(cause !== null && { cause }),
      ...(event === 'email.bounced' && { permanent: true }),
      ...(until !== null && { suppressedUntil: new Date(until).toISOString() }),
    })
  }

  /** Until when the recipient is suppressed; null if it is not. A lost strike costs one more refusal. */
  async #strike({ emailId, content }: Claim, { text }: Reply): Promise<number | null> {
    if (this.#striking >= strikesMax) return null
    this.#striking++
    try {
      const destination = classifyDestination(content.to)
      const strike = await this.#deps.store.strikeRefused({ email: emailId, destination, reply: text })
      return strike.kind === 'suppressed' ? strike.until : null
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        this.#deps.emit({ kind: 'bug', doing: 'suppressing a recipient', error })
      return null
    } finally {
      this.#striking--
    }
  }

  /** Resolves when the strikes and webhooks of written outcomes are stored. */
  async whenFollowed(): Promise<void> {
    await Promise.all(this.#following)
  }

  /** Writes the kept results once more. */
  async retry(): Promise<void> {
    await Promise.all([...this.#kept].map((result) => this.write(result)))
  }

  /** Any write of the worker failed: of an outcome, a claim, or a renewal of leases. */
  noteFailure(error: unknown): void {
    if (!this.#reported) this.#deps.emit({ kind: 'store_write_failed', error })
    this.#reported = true
    this.#deps.onFailure()
    if (!(error instanceof StoreUnavailable)) this.#deps.emit({ kind: 'bug', doing: 'writing to the store', error })
  }

  noteSuccess(): void {
    this.#reported = false
  }
}
