/**
 * Writes to the store what this process observes, every few seconds: the counts behind charts, refusals, and
 * what it says of itself. A failed write is not repeated, because it may have been committed: all rows that
 * were taken for it are dropped.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { stepMax } from '../domain/bounds.ts'
import { counted } from '../domain/counts.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { MeasuredRelay } from '../domain/delivery/relay-state.ts'
import { recordEveryMs } from '../domain/operator/activity.ts'
import type { NodeFault, NodeRecord } from '../domain/operator/node.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import { ActivityCounter } from './activity-counter.ts'
import type { EventStream, LogChanged, RelayChanged } from './events.ts'
import { keepOutage } from './keep-outage.ts'
import type { Queueing } from './queueing.ts'
import { ofRealMail } from './real-mail.ts'
import { RelayHealth } from './relay-health.ts'

/** The first event after a quiet time is written this soon, with those that follow it. */
const soonMs = 250
const noteEveryMs = 10_000
/** A store that does not answer must not delay the end of the process. */
const stopMs = 1000

export type RecorderDeps = {
  readonly store: Pick<
    Store,
    'addActivity' | 'addRefusals' | 'findCheck' | 'noteNode' | 'now' | 'removeNode' | 'swapCheck'
  >
  readonly events: EventStream
  readonly node: Omit<NodeRecord, 'seenAt' | 'relays' | 'faults'>
  /** Those of transports may change. */
  readonly relays: () => readonly MeasuredRelay[]
  /** How many log lines were lost since the start. */
  readonly linesLost: () => number
  readonly queueing: Pick<Queueing, 'findFault'>
}

export class Recorder {
  readonly #deps: RecorderDeps
  readonly #counter: ActivityCounter
  /** By name. */
  readonly #relays = new Map<string, RelayHealth>()
  #logFault: { readonly since: number; readonly reason: string } | null = null
  /** As it was noted last. */
  #isQueueing = true
  #noteTimer: NodeJS.Timeout | undefined
  /** Set while a write is due. */
  #timer: NodeJS.Timeout | undefined
  #writtenAtMs = Number.NEGATIVE_INFINITY
  #notePending = false
  #stopped = false
  /** One write at a time. */
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: RecorderDeps) {
    this.#deps = deps
    this.#counter = new ActivityCounter(() => deps.store.now())
    this.#watchRelays()
    deps.events.subscribe((event) => {
      if (this.#stopped) return
      const real = ofRealMail(event)
      if (real !== null) this.#counter.observe(real)
      else if (event.kind === 'request_answered' && event.status !== 202) this.#counter.keepRefusal(event)
      if (event.kind === 'relay_changed') this.#noteChange(event)
      if (event.kind === 'log_changed') this.#noteLog(event)
      if (event.kind === 'request_answered' && this.#isQueueing !== this.#canQueue()) this.#noteNode()
      if (real?.kind === 'attempt_recorded') this.#noteAttempt(real.outcome)
      if (this.#timer === undefined && !this.#counter.isEmpty) this.#schedule()
    })
  }

  start(): void {
    this.#noteNode()
    this.#noteTimer = setInterval(() => this.#noteNode(), noteEveryMs)
  }

  /** Writes what is left, and takes the process off the list. */
  async stop(): Promise<void> {
    clearInterval(this.#noteTimer)
    clearTimeout(this.#timer)
    this.#stopped = true
    this.#write(() => this.#writeActivity())
    const remove = () => this.#try(() => this.#deps.store.removeNode(this.#deps.node.id))
    const removed = remove() // at once, since a write may hang
    // A write that had begun may put the process on the list again.
    const all = Promise.all([this.#writing, removed]).then(remove)
    await Promise.race([all, sleep(stopMs, undefined, { ref: false })])
  }

  #schedule(): void {
    const waitMs = Math.max(soonMs, this.#writtenAtMs + recordEveryMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#writtenAtMs = performance.now()
      this.#write(() => this.#writeActivity())
    }, waitMs)
  }

  /** The first attempt is known at once: until then the service says that it has sent nothing yet. */
  #noteAttempt(outcome: DeliveryOutcome): void {
    const relay = 'relay' in outcome && outcome.relay !== null ? this.#healthOf(outcome.relay) : undefined
    if (relay === undefined) return
    const isFirst = !relay.isTried
    relay.attempted(outcome, this.#deps.store.now())
    if (isFirst) this.#noteNode()
  }

  #noteChange({ relay, ...change }: RelayChanged): void {
    const { node, store } = this.#deps
    const health = this.#healthOf(relay)
    const before = health?.state().lastOutage
    health?.changed(change, store.now())
    const after = health?.state().lastOutage
    this.#noteNode()
    const outage = change.available ? after : before
    if (before !== after && outage)
      this.#write(() => keepOutage(store, { ...outage, relay, node: node.id }, change.available))
  }

  #healthOf(relay: string): RelayHealth | undefined {
    if (!this.#relays.has(relay)) this.#watchRelays()
    return this.#relays.get(relay)
  }

  #watchRelays(): void {
    const { relays, store } = this.#deps
    const all = relays()
    for (const [name, health] of this.#relays) if (!all.some((relay) => health.isOf(relay))) this.#relays.delete(name)
    for (const relay of all)
      if (!this.#relays.has(relay.name)) this.#relays.set(relay.name, new RelayHealth(relay, store.now()))
  }

  #noteLog({ reason }: LogChanged): void {
    this.#logFault = reason === null ? null : { since: this.#deps.store.now(), reason }
    this.#noteNode()
  }

  #write(write: () => Promise<void>): void {
    this.#writing = this.#writing.then(() => this.#try(write))
  }

  async #try(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (error instanceof StoreUnavailable) return // requests and the worker report an unavailable store
      this.#deps.events.emit({ kind: 'bug', doing: 'recording activity', error })
    }
  }

  async #writeActivity(): Promise<void> {
    const { store } = this.#deps
    const [counts, refusals] = [this.#counter.takeCounts(), this.#counter.takeRefusals()]
    for (const rows of inSteps(counts)) await store.addActivity(rows)
    for (const rows of inSteps(refusals)) await store.addRefusals(rows)
  }

  #noteNode(): void {
    if (this.#notePending || this.#stopped) return
    this.#notePending = true
    this.#write(async () => {
      this.#notePending = false
      if (this.#stopped) return
      const { node, store } = this.#deps
      this.#watchRelays()
      const relays = [...this.#relays.values()].map((relay) => relay.state())
      await store.noteNode({ ...node, relays, faults: this.#findFaults() })
    })
  }

  #canQueue = (): boolean => this.#deps.queueing.findFault() === null

  #findFaults(): NodeFault[] {
    const { linesLost, queueing, store } = this.#deps
    const fault = queueing.findFault()
    this.#isQueueing = fault === null
    const lost = `; ${counted(linesLost(), 'line')} lost`
    return [
      ...(this.#logFault === null
        ? []
        : [{ what: 'log', ...this.#logFault, reason: this.#logFault.reason + lost } as const]),
      ...(fault === null
        ? []
        : [{ what: 'queueing', since: store.now() - fault.forMs, reason: fault.message } as const]),
    ]
  }
}

const inSteps = <Row>(rows: readonly Row[]): Row[][] =>
  Array.from({ length: Math.ceil(rows.length / stepMax) }, (_, n) => rows.slice(n * stepMax, (n + 1) * stepMax))
