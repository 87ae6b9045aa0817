/**
 * What one worker has in hand: claimed and waiting for a connection, being sent, or sent with its
 * outcome on the way to the store. What waits goes out in turns among apps. After a lease was lost
 * two attempts at one email may be in hand: they are told apart.
 */
import type { AppId, EmailId } from '../../domain/id.ts'
import type { Claim } from '../../store/store.ts'

type Held = { readonly claim: Pick<Claim, 'emailId' | 'appId'> }

export class ClaimedEmails<Attempt extends Held> {
  readonly #active = new Set<Attempt>()
  readonly #storing = new Set<Attempt>()
  readonly #turns = new Map<AppId, number>()
  #waiting: Attempt[] = []
  #turn = 0

  get active(): number {
    return this.#active.size
  }

  get storing(): number {
    return this.#storing.size
  }

  all(): Attempt[] {
    return [...this.#active, ...this.#storing, ...this.#waiting]
  }

  add(attempts: readonly Attempt[]): void {
    this.#waiting.push(...attempts)
  }

  /** How many the app has that has most. */
  mostOfOneApp(): number {
    return Math.max(0, ...countByApp(this.all()).values())
  }

  /** What waits and could begin, were there connections: of apps with fewer than `perApp` under way. */
  ready(perApp: number): Attempt[] {
    const active = countByApp(this.#active)
    return this.#waiting.filter(({ claim }) => (active.get(claim.appId) ?? 0) < perApp)
  }

  /** Takes what goes next, now being sent: of the app whose last turn is the longest ago. */
  begin(perApp: number): Attempt | undefined {
    const turn = ({ claim }: Attempt) => this.#turns.get(claim.appId) ?? 0
    const [first, ...others] = this.ready(perApp)
    if (first === undefined) return undefined
    const next = others.reduce((least, other) => (turn(other) < turn(least) ? other : least), first)
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    this.#active.add(next)
    if (this.#waiting.length === 0) this.#turns.clear()
    else this.#turns.set(next.claim.appId, ++this.#turn)
    return next
  }

  /** It was sent or given up; its outcome goes to the store. */
  end(attempt: Attempt): void {
    this.#active.delete(attempt)
    this.#storing.add(attempt)
  }

  /** Its outcome is on record, or is kept elsewhere until it can be. */
  drop(attempt: Attempt): void {
    this.#storing.delete(attempt)
  }

  /** Takes back all that has not begun. */
  release(): Attempt[] {
    const released = this.#waiting
    this.#waiting = []
    return released
  }

  /** Others hold these now. */
  forget(lost: readonly EmailId[]): void {
    this.#waiting = this.#waiting.filter(({ claim }) => !lost.includes(claim.emailId))
  }
}

function countByApp(attempts: Iterable<Held>): Map<AppId, number> {
  const counts = new Map<AppId, number>()
  for (const { claim } of attempts) counts.set(claim.appId, (counts.get(claim.appId) ?? 0) + 1)
  return counts
}
