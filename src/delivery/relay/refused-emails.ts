/**
 * The emails that a relay has refused for good, in words that blame neither the recipient nor the relay; and
 * whether it takes the emails of others, so that such a refusal is meant for the email.
 */
import type { EmailId } from '../../domain/id.ts'

/** So many emails are remembered. One that is forgotten is tried again. */
const rememberedMax = 10_000
/** An email that is refused alone, by a relay that has taken others lately, is tried so often. */
const aloneTimes = 3
const latelyMs = 300_000

export class RefusedEmails {
  readonly #first = new Map<EmailId, { readonly atMs: number; times: number }>()
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
    const email = this.#first.get(id) ?? this.#remember(id, nowMs)
    email.times += 1
    if (this.#acceptedMs > email.atMs) return true
    return email.times >= aloneTimes && this.#since.size === 1 && nowMs - this.#acceptedMs < latelyMs
  }

  #remember(id: EmailId, atMs: number) {
    const [oldest] = this.#first.keys()
    if (this.#first.size >= rememberedMax && oldest !== undefined) this.#first.delete(oldest)
    const email = { atMs, times: 0 }
    this.#first.set(id, email)
    return email
  }
}
