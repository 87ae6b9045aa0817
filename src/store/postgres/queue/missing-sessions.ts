/**
 * Which workers' sessions are missing (`worker-session.ts`), and whether mail may be taken back now:
 * only from a session that has been missing for `missingForMs`, and not soon after a failure of the server,
 * when the workers that live may hold outcomes to write.
 */

/** The first half of the advisory lock's key: "POST" in ASCII. The second half is the session's id. */
export const sessionLockClass = 0x504f5354
export const missingForMs = 1000
const afterFailureMs = 5000

export class MissingSessions {
  #sinceMs = new Map<number, number>()
  #mayTakeBackFromMs = 0

  /** The sessions that leases name and that do not exist now. */
  note(ids: readonly number[]): void {
    const now = performance.now()
    this.#sinceMs = new Map(ids.map((id) => [id, this.#sinceMs.get(id) ?? now]))
  }

  /** A claim, a renewal or an outcome failed, or this process's own session ended. */
  noteFailure(): void {
    this.#mayTakeBackFromMs = performance.now() + afterFailureMs
  }

  get mayTakeBack(): boolean {
    return performance.now() >= this.#mayTakeBackFromMs
  }

  longMissing(): number[] {
    const beforeMs = performance.now() - missingForMs
    return [...this.#sinceMs].filter(([, sinceMs]) => sinceMs <= beforeMs).map(([id]) => id)
  }
}
