/** Tells the rest of the process what a claim did, and what has changed since the one before. */
import type { Emit } from '../../observe/events.ts'
import type { Claimed } from '../../store/store.ts'

export class ClaimEvents {
  readonly #emit: Emit
  #standby = false
  #deathIsKnown = true

  constructor(emit: Emit) {
    this.#emit = emit
  }

  report({ claims, deathIsKnown, ended, lost, standby }: Claimed, tookMs: number): void {
    const emit = this.#emit
    if (!standby) emit({ kind: 'mail_claimed', count: claims.length, tookMs })
    if (standby !== this.#standby) emit({ kind: 'standby_changed', standby })
    this.#standby = standby
    if (deathIsKnown !== this.#deathIsKnown) emit({ kind: 'session_changed', available: deathIsKnown })
    this.#deathIsKnown = deathIsKnown
    if (lost.length > 0) emit({ kind: 'leases_taken_back', lost })
    if (ended.length > 0) emit({ kind: 'emails_ended', ended })
  }
}
