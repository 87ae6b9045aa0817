/**
 * The counts of the queue, shared by all who ask. Counting takes longer the more mail waits, so a count is kept for ten
 * times as long as it took to make, and one is made at a time.
 */
import type { QueueSummary } from '../store/operator-store.ts'
import type { Store } from '../store/store.ts'

export type CountedQueue = QueueSummary & { readonly countedAt: number }

const keepFactor = 10

export class QueueCounts {
  readonly #store: Pick<Store, 'queueSummary' | 'now'>
  #last: { readonly counted: CountedQueue; readonly untilMs: number } | null = null
  #counting: Promise<CountedQueue> | null = null

  constructor(store: Pick<Store, 'queueSummary' | 'now'>) {
    this.#store = store
  }

  async read(): Promise<CountedQueue> {
    if (this.#last !== null && performance.now() < this.#last.untilMs) return this.#last.counted
    this.#counting ??= this.#count().finally(() => {
      this.#counting = null
    })
    return this.#counting
  }

  async #count(): Promise<CountedQueue> {
    const countedAt = this.#store.now()
    const beganMs = performance.now()
    const counted = { ...(await this.#store.queueSummary()), countedAt }
    const endedMs = performance.now()
    this.#last = { counted, untilMs: endedMs + keepFactor * (endedMs - beganMs) }
    return counted
  }
}
