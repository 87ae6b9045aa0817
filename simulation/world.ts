/**
 * The clock and the events of a simulation. All that happens is an event of one queue, and belongs to an
 * owner: a process of Postern, or the world around it. Between two events, all code that can run has run,
 * so a process that is killed there has stopped at an await.
 *
 * Events at the same time happen in the order in which they were planned.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { Random } from './random.ts'

/** A process. When it dies, `ends` release what it has open. */
export type Owner = {
  readonly name: string
  isAlive: boolean
  /** Its events wait until then. */
  frozenUntilMs: number
  /** From then on it may break off what it does: it was asked to stop before. */
  mayEndFromMs: number
  readonly ends: Set<() => void>
}

export type Planned = { isCancelled: boolean }

type Event = Planned & { atMs: number; readonly order: number; readonly owner: Owner; readonly run: () => void }

export const newOwner = (name: string): Owner => ({
  name,
  isAlive: true,
  frozenUntilMs: 0,
  mayEndFromMs: Number.POSITIVE_INFINITY,
  ends: new Set(),
})

/** A rule is broken. */
class Violation extends Error {
  override name = 'Violation'
}

/** 2026-03-01T00:00:00Z */
const beginsAt = Date.UTC(2026, 2, 1)
const realTurn = setImmediate

export class World {
  readonly seed: number
  /** The world around the processes, which never dies. */
  readonly outside = newOwner('world')
  readonly #events: Event[] = []
  readonly #owner = new AsyncLocalStorage<Owner>()
  readonly #trace = createHash('sha256')
  readonly #watch: ((line: string) => void) | null
  /** Milliseconds since the start, on the monotonic clock of the machine. */
  nowMs = 0
  /** How far the wall clock was set, and how much it gains each millisecond. */
  wallOffsetMs = 0
  drift = 0
  #driftSinceMs = 0
  #order = 0
  /** Events that have happened. */
  steps = 0
  #violation: Error | null = null

  /** @param watch is called with each line of the trace */
  constructor(seed: number, watch: ((line: string) => void) | null = null) {
    this.seed = seed
    this.#watch = watch
  }

  random = (name: string): Random => new Random(this.seed, name)

  /** Milliseconds since 1970 UTC on the wall clock of the machine. */
  wallMs = (): number =>
    Math.floor(beginsAt + this.nowMs + this.wallOffsetMs + (this.nowMs - this.#driftSinceMs) * this.drift)

  /** From now on the wall clock gains `drift` milliseconds a millisecond. */
  setDrift(drift: number): void {
    this.wallOffsetMs += (this.nowMs - this.#driftSinceMs) * this.drift
    this.#driftSinceMs = this.nowMs
    this.drift = drift
  }

  /** The owner of the code that runs now. */
  owner = (): Owner => this.#owner.getStore() ?? this.outside

  as<T>(owner: Owner, run: () => T): T {
    return this.#owner.run(owner, run)
  }

  /** Plans an event. It does not happen if its owner is dead then. */
  after = (ms: number, run: () => void, owner?: Owner): Planned => this.at(this.nowMs + ms, run, owner)

  at(ms: number, run: () => void, owner: Owner = this.owner()): Planned {
    const event = { atMs: Math.max(this.nowMs, ms), order: this.#order++, owner, run, isCancelled: false }
    insert(this.#events, event)
    return event
  }

  kill(owner: Owner): void {
    if (!owner.isAlive) return
    owner.isAlive = false
    this.note(`${owner.name} dies`)
    for (const end of [...owner.ends]) end()
    owner.ends.clear()
  }

  /** Adds a line to the trace. */
  note(text: string): void {
    const line = `${this.nowMs.toFixed(3)} ${text}\n`
    this.#trace.update(line)
    this.#watch?.(line)
  }

  /** SHA-256 of the trace. Ends it. */
  digest = (): string => this.#trace.digest('hex')

  /** Records a violation; the run ends after this event. */
  fail(why: string | Error): void {
    this.#violation ??= why instanceof Error ? why : new Violation(why)
  }

  require(holds: boolean, why: () => string): void {
    if (!holds) this.fail(why())
  }

  /** Runs the events until `isOver`. Throws the first violation. */
  async run(isOver: () => boolean): Promise<void> {
    for (;;) {
      if (this.#violation !== null) throw this.#violation
      if (isOver()) return
      const event = this.#events.pop()
      if (event === undefined) throw new Violation('nothing will ever happen again')
      if (event.isCancelled || !event.owner.isAlive) continue
      if (event.owner.frozenUntilMs > Math.max(event.atMs, this.nowMs)) {
        event.atMs = event.owner.frozenUntilMs
        insert(this.#events, event)
        continue
      }
      this.nowMs = Math.max(this.nowMs, event.atMs)
      this.steps += 1
      this.#owner.run(event.owner, event.run)
      await new Promise((resolve) => realTurn(resolve))
    }
  }

  /** The machine stands still while its clocks run: all its timers are late. */
  leap(ms: number): void {
    this.nowMs += Math.max(0, ms)
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

/** Keeps the events sorted, the next one last: there are some hundreds. */
function insert(events: Event[], event: Event): void {
  let [low, high] = [0, events.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(event, events[middle] as Event)) low = middle + 1
    else high = middle
  }
  events.splice(low, 0, event)
}
