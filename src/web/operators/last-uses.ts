/** Notes when tokens and sessions are used, each at most once in `lastUseEveryMs`. */
import { lastUseEveryMs } from '../../domain/bounds.ts'
import { LruMap } from '../../domain/lru-map.ts'

const usesKept = 10_000

type Parts<Id> = {
  readonly note: (id: Id) => Promise<void>
  /** Milliseconds since 1970 on the store's clock. */
  readonly now: () => number
}

export class LastUses<Id extends string> {
  readonly #parts: Parts<Id>
  readonly #notedAt = new LruMap<Id, number>(usesKept)

  constructor(parts: Parts<Id>) {
    this.#parts = parts
  }

  /**
   * Best effort: a request does not wait for it, and does not fail with it.
   * @param lastAt the last use that the store knows; null if there is none
   */
  note(id: Id, lastAt: number | null): void {
    const now = this.#parts.now()
    if (now - Math.max(lastAt ?? 0, this.#notedAt.get(id) ?? 0) < lastUseEveryMs) return
    this.#notedAt.set(id, now)
    void this.#parts.note(id).catch(() => {})
  }
}
