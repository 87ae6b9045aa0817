/**
 * The emails that a relay has refused for good and unclearly (`FailureClass`); and whether it takes other
 * emails, so that such a refusal is meant for the email.
 */
import type { EmailId } from '../../domain/id.ts'

/** So many emails are remembered. One that is forgotten is tried again. */
const rememberedMax = 10_000
/** An email that is refused alone, by a relay that has taken others lately, is tried for so long. */
const aloneMs = 60_000
const latelyMs = 300_000

export class RefusedEmails {
  readonly #first = new Map<EmailId, number>()
  /** Those refused since the relay last accepted an email: one or several. */
  readonly #since = new Set<EmailId>()
  #acceptedMs = Number.NEGATIVE_INFINITY

  accepted(nowMs: number): void {
    this.#acceptedMs = nowMs
    this.#since.clear()
  }

  /** Whether the relay takes other mail. */
  refused(id: EmailId, nowMs: number): boolean {
    if (this.#since.size < 2) this.#since.add(id)
    const firstMs = this.#first.get(id) ?? this.#remember(id, nowMs)
    if (this.#acceptedMs > firstMs) return true
    return this.#since.size === 1 && nowMs - firstMs >= aloneMs && nowMs - this.#acceptedMs < latelyMs
  }

  #remember(id: EmailId, atMs: number): number {
    const [oldest] = this.#first.keys()
    if (this.#first.size >= rememberedMax && oldest !== undefined) this.#first.delete(oldest)
    this.#first.set(id, atMs)
    return atMs
  }
}
