/**
 * The limit of each recipient, as a second implementation: an email takes a place, and places come back one
 * by one over an hour. Nobody knows when exactly a request was judged, so each has the benefit of the doubt.
 */
import { hourMs } from '../src/domain/duration.ts'

/** A request: judged between the two times, unless nobody knows its answer. */
type Try = { readonly askedAtMs: number; readonly answeredAtMs: number | null }

/** `answer`: `accepted`, or the code of a refusal. */
type Answered = { readonly answer: string; readonly askedAtMs: number; readonly nowMs: number }

/** Clocks drift by 1 %. */
const toleranceMs = 60_000

export class RecipientLimits {
  /** By recipient: those that took a place, or may have. */
  readonly #tries = new Map<string, Try[]>()

  asked(to: string, askedAtMs: number): void {
    const tries = this.#tries.get(to) ?? []
    tries.push({ askedAtMs, answeredAtMs: null })
    this.#tries.set(
      to,
      tries.filter((each) => each.askedAtMs > askedAtMs - 2 * hourMs),
    )
  }

  /** Whether a request could be answered so. `perHour`: the limit. */
  answered(
    { to, perHour }: { readonly to: string; readonly perHour: number },
    { answer, askedAtMs, nowMs }: Answered,
  ): boolean {
    const tries = this.#tries.get(to) ?? []
    // Nobody knows whether it was stored.
    if (answer === 'queue_unavailable') return true
    const index = tries.findIndex((each) => each.askedAtMs === askedAtMs && each.answeredAtMs === null)
    if (index >= 0) tries.splice(index, 1)
    const spacingMs = hourMs / perHour
    const fullMs = hourMs - spacingMs
    if (answer === 'accepted') {
      // Only what was surely judged before counts, at its earliest.
      const before = tries.filter(({ answeredAtMs }) => answeredAtMs !== null && answeredAtMs <= askedAtMs)
      tries.push({ askedAtMs, answeredAtMs: nowMs })
      const earliest = before.map((each) => each.askedAtMs)
      return allBackAt(earliest, spacingMs) <= nowMs + fullMs + toleranceMs
    }
    if (answer !== 'recipient_rate_limited') return true
    const latest = tries.map(({ answeredAtMs }) => answeredAtMs ?? nowMs)
    return allBackAt(latest, spacingMs) > askedAtMs + fullMs - toleranceMs
  }

  forget(beforeMs: number): void {
    for (const [to, tries] of this.#tries) if ((tries.at(-1)?.askedAtMs ?? 0) < beforeMs) this.#tries.delete(to)
  }
}

/** When all places that were taken at these times are back. */
const allBackAt = (takenAtMs: readonly number[], spacingMs: number): number =>
  takenAtMs.toSorted((a, b) => a - b).reduce((atMs, takenMs) => Math.max(atMs, takenMs) + spacingMs, 0)
