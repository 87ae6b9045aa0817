/**
 * Group commit: calls that arrive while a group is being written form the next group, so that one
 * durable commit serves many. A call whose group is not being written at its deadline is withdrawn.
 * A call whose group is being written is rejected as well, but may still take effect.
 */
import { StoreUnavailable } from '../store.ts'

export type Settled = { readonly value: unknown } | { readonly error: Error }

type Waiting<Call> = {
  readonly call: Call
  readonly settle: (result: Settled) => void
}

/** A group has been written, or has failed. */
export type OnGroup = (group: { readonly calls: number; readonly tookMs: number }) => void

type GroupOptions = {
  readonly groupMax: number
  /** How many groups are written at once. */
  readonly inFlightMax: number
  /** From the start of a group to that of the next, unless `untilWaiting` calls wait. */
  readonly pause?: { readonly ms: number; readonly untilWaiting: number }
  readonly onGroup?: OnGroup | undefined
}

export class GroupedCalls<Call> {
  readonly #run: (calls: Call[]) => Promise<Settled[]>
  readonly #groupMax: number
  readonly #inFlightMax: number
  readonly #pause: { readonly ms: number; readonly untilWaiting: number }
  readonly #onGroup: OnGroup
  readonly #waiting = new Set<Waiting<Call>>()
  #inFlight = 0
  #scheduled = false
  #pausedUntilMs = 0
  #pauseTimer: NodeJS.Timeout | undefined

  /** `run` settles every call of a group. */
  constructor(run: (calls: Call[]) => Promise<Settled[]>, options: GroupOptions) {
    this.#run = run
    this.#groupMax = options.groupMax
    this.#inFlightMax = options.inFlightMax
    this.#pause = options.pause ?? { ms: 0, untilWaiting: 0 }
    this.#onGroup = options.onGroup ?? (() => {})
  }

  /** Rejects with `StoreUnavailable` if `deadlineMs` passes first. */
  submit(call: Call, deadlineMs?: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle = (result: Settled) => {
        clearTimeout(timer)
        if ('error' in result) reject(result.error)
        else resolve(result.value)
      }
      const waiting: Waiting<Call> = { call, settle }
      const abandon = () => {
        this.#waiting.delete(waiting)
        reject(new StoreUnavailable(`no answer within ${Math.round(deadlineMs ?? 0)} ms`))
      }
      const timer = deadlineMs === undefined ? undefined : setTimeout(abandon, deadlineMs)
      this.#waiting.add(waiting)
      this.#schedule()
    })
  }

  // Collects the calls of one iteration of the event loop, or of the pause.
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= this.#inFlightMax || this.#waiting.size === 0) return
    clearTimeout(this.#pauseTimer)
    const pauseMs = this.#pausedUntilMs - performance.now()
    if (pauseMs > 0 && this.#waiting.size < this.#pause.untilWaiting) {
      this.#pauseTimer = setTimeout(() => this.#schedule(), pauseMs)
      return
    }
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      void this.#send()
    })
  }

  async #send(): Promise<void> {
    const group = [...this.#waiting.values().take(this.#groupMax)]
    for (const waiting of group) this.#waiting.delete(waiting)
    if (group.length > 0) {
      this.#inFlight += 1
      this.#schedule()
      const begunAtMs = performance.now()
      this.#pausedUntilMs = begunAtMs + this.#pause.ms
      const results = await this.#settleAll(group)
      this.#onGroup({ calls: group.length, tookMs: performance.now() - begunAtMs })
      this.#inFlight -= 1
      for (const [index, waiting] of group.entries()) {
        waiting.settle(results[index] ?? { error: new Error('a call of a group was not answered') })
      }
    }
    this.#schedule()
  }

  async #settleAll(group: Waiting<Call>[]): Promise<Settled[]> {
    try {
      return await this.#run(group.map((waiting) => waiting.call))
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      return group.map(() => ({ error: failure }))
    }
  }
}
