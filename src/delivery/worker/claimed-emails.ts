/**
 * The emails that one worker has claimed: waiting for a connection, being sent, or sent with the
 * outcome being stored. Waiting emails begin in turns among apps. After a lost lease two attempts at
 * one email may be here; their fences tell them apart.
 */
import type { AppId } from '../../domain/id.ts'
import type { Claim, Lease } from '../../store/store.ts'

type HasClaim = { readonly claim: Pick<Claim, 'emailId' | 'fence' | 'appId'> }

/**
 * An email that takes longer hangs: its relay may not reply for ten minutes. It does not count for the share
 * of its app, so the rest of the app's mail may use what is free; other apps still come first.
 */
const hangsAfterMs = 30_000

export class ClaimedEmails<Attempt extends HasClaim> {
  /** And when each began. */
  readonly #sending = new Map<Attempt, number>()
  readonly #storing = new Set<Attempt>()
  /** When each app was served last, as a count of begun emails. */
  readonly #servedAt = new Map<AppId, number>()
  #waiting: Attempt[] = []
  #begun = 0

  get sending(): number {
    return this.#sending.size
  }

  get storing(): number {
    return this.#storing.size
  }

  all(): Attempt[] {
    return [...this.#sending.keys(), ...this.#storing, ...this.#waiting]
  }

  add(attempts: readonly Attempt[]): void {
    this.#waiting.push(...attempts)
  }

  /** The largest number of emails that belong to one app. */
  mostOfOneApp(): number {
    return Math.max(0, ...countByApp(this.all()).values())
  }

  /** The waiting emails that could begin if there were connections: their apps send fewer than `perApp`. */
  ready(perApp: number): Attempt[] {
    const sinceMs = performance.now() - hangsAfterMs
    const recent = this.#sending.entries().filter(([, begunAtMs]) => begunAtMs > sinceMs)
    const sending = countByApp(recent.map(([attempt]) => attempt))
    return this.#waiting.filter(({ claim }) => (sending.get(claim.appId) ?? 0) < perApp)
  }

  /** Moves the next email from waiting to sending: from the app that was served longest ago. */
  begin(perApp: number): Attempt | undefined {
    const servedAt = ({ claim }: Attempt) => this.#servedAt.get(claim.appId) ?? 0
    const [first, ...others] = this.ready(perApp)
    if (first === undefined) return undefined
    const next = others.reduce((least, other) => (servedAt(other) < servedAt(least) ? other : least), first)
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    this.#sending.set(next, performance.now())
    if (this.#waiting.length === 0) this.#servedAt.clear()
    else this.#servedAt.set(next.claim.appId, ++this.#begun)
    return next
  }

  /** The attempt has ended; its outcome is being stored. */
  markStoring(attempt: Attempt): void {
    this.#sending.delete(attempt)
    this.#storing.add(attempt)
  }

  /** The outcome is on record, or is kept elsewhere until it can be stored. */
  remove(attempt: Attempt): void {
    this.#storing.delete(attempt)
  }

  /** Removes and returns all waiting emails. */
  release(): Attempt[] {
    const released = this.#waiting
    this.#waiting = []
    return released
  }

  /** Removes the waiting emails whose leases are lost. */
  removeWaiting(lost: readonly Lease[]): void {
    this.#waiting = this.#waiting.filter(({ claim }) => !lost.some((lease) => isSameLease(lease, claim)))
  }
}

export const isSameLease = (one: Lease, other: Lease): boolean =>
  one.emailId === other.emailId && one.fence === other.fence

function countByApp(attempts: Iterable<HasClaim>): Map<AppId, number> {
  const counts = new Map<AppId, number>()
  for (const { claim } of attempts) counts.set(claim.appId, (counts.get(claim.appId) ?? 0) + 1)
  return counts
}
