/** Whether emails are queued, as the last requests show: a full database may still take a smaller write. */
import type { PosternEvent } from './events.ts'

/** For so long after a request that could not be queued, the next one could not be either. */
const failedMs = 10_000

type Failure = { readonly message: string; readonly firstMs: number; readonly lastMs: number }

export class Queueing {
  #failure: Failure | null = null

  readonly observe = (event: PosternEvent): void => {
    if (event.kind === 'request_answered' && event.status === 202) this.#failure = null
    if (event.kind !== 'store_unavailable' || event.work !== 'request') return
    const nowMs = performance.now()
    const firstMs = this.#current()?.firstMs ?? nowMs
    this.#failure = { message: event.error.message, firstMs, lastMs: nowMs }
  }

  #current(): Failure | null {
    return this.#failure !== null && performance.now() - this.#failure.lastMs < failedMs ? this.#failure : null
  }

  /**
   * Why requests were not queued lately, and for how long; null if the last one was, or if there was none.
   */
  findFault(): { readonly message: string; readonly forMs: number } | null {
    const failure = this.#current()
    return failure && { message: failure.message, forMs: Math.round(performance.now() - failure.firstMs) }
  }
}
