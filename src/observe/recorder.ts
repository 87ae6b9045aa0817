/**
 * Writes to the store what this process observes, every few seconds: the counts behind charts, refusals, and what it says
 * of itself. A write that fails is not repeated, because its rows may have been written; what it held is lost.
 */
import type { NodeRecord } from '../domain/activity.ts'
import { stepMax } from '../store/shared/bounds.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import { ActivityCounter } from './activity-counter.ts'
import type { EventStream } from './events.ts'
import type { MeasuredRelay } from './gauges.ts'

const writeEveryMs = 5000
/** The process describes itself with every second write, and when a relay falls or comes back. */
const writesPerNote = 2

export type RecorderDeps = {
  readonly store: Pick<Store, 'addActivity' | 'addRefusals' | 'noteNode' | 'removeNode' | 'now'>
  readonly events: EventStream
  readonly node: Omit<NodeRecord, 'seenAt' | 'relays'>
  readonly relays: readonly MeasuredRelay[]
}

export class Recorder {
  readonly #deps: RecorderDeps
  readonly #counter: ActivityCounter
  /** The last change of each relay. */
  readonly #changes = new Map<string, { readonly since: number; readonly reason: string }>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #writes = 0

  constructor(deps: RecorderDeps) {
    this.#deps = deps
    this.#counter = new ActivityCounter(() => deps.store.now())
    deps.events.subscribe(this.#counter.observe)
    deps.events.subscribe((event) => {
      if (event.kind !== 'relay_changed') return
      const { relay, available, reason } = event
      this.#changes.set(relay, { since: deps.store.now(), reason: available ? '' : reason })
      this.#writes = 0
    })
  }

  start(): void {
    this.#write()
    this.#timer = setInterval(() => this.#write(), writeEveryMs)
  }

  /** Writes what is left, and takes the process off the list. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.#try(() => this.#writeActivity())
    await this.#try(() => this.#deps.store.removeNode(this.#deps.node.id))
  }

  /** One write at a time. */
  #write(): void {
    this.#writing = this.#writing.then(async () => {
      const note = this.#writes % writesPerNote === 0
      this.#writes += 1
      if (note) await this.#try(() => this.#noteNode())
      await this.#try(() => this.#writeActivity())
    })
  }

  async #try(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (error instanceof StoreUnavailable) return // those that wait for an answer report it
      this.#deps.events.emit({ kind: 'bug', doing: 'recording activity', error })
    }
  }

  async #writeActivity(): Promise<void> {
    const { store } = this.#deps
    const counts = this.#counter.takeCounts()
    const refusals = this.#counter.takeRefusals()
    for (let from = 0; from < counts.length; from += stepMax)
      await store.addActivity(counts.slice(from, from + stepMax))
    for (let from = 0; from < refusals.length; from += stepMax)
      await store.addRefusals(refusals.slice(from, from + stepMax))
  }

  #noteNode(): Promise<void> {
    const { node, relays, store } = this.#deps
    const states = relays.map((relay) => ({
      name: relay.name,
      available: relay.isAvailable(),
      ...(this.#changes.get(relay.name) ?? { since: node.startedAt, reason: '' }),
      connections: relay.connections(),
    }))
    return store.noteNode({ ...node, relays: states })
  }
}
