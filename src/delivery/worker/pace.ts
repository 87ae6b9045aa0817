/**
 * Backpressure: lets delivery keep its share of the process and of the store. While this process delays the
 * mail that it delivers, requests wait so that at most seven go on for eight emails that end. Then more load
 * makes the answers to requests slower, but neither the queue longer nor the mail later.
 *
 * A relay that is slow or down is no reason to wait: the queue is for that. The process is what delays mail
 * if connections are idle while mail waits in the store, or if the event loop is always busy.
 */
import { performance } from 'node:perf_hooks'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { enqueueDeadlineMs } from '../../domain/bounds.ts'

/** Mail that is claimed for the first time is late if it has waited this long. */
const lateMs = 200
const idleMin = 0.25
const busyMin = 0.85
/** Event loop time is measured over at least this long. */
const sampleMs = 50
/** The process counts as late for this long after each claim that says so. */
const lateForMs = 250
/** Requests wait only once this has lasted: delivery recovers from a start or a short stall by itself. */
const lastingMs = 1000
const admittedPerEnd = 7 / 8
/** Emails that ended while no request waited count for this many requests at most. */
const creditMax = 64

type PaceOptions = {
  /** Called when requests begin to wait, and when they no longer do. */
  readonly onChange?: (late: boolean) => void
  readonly now?: () => number
  /** The share of its time that the event loop was busy since the last call, 0 to 1. */
  readonly utilization?: () => number
}

type Waiting = { readonly resolve: (admitted: boolean) => void; readonly timer: NodeJS.Timeout }

export class Pace {
  /** By delivery key, the one served longest ago first. */
  readonly #waiting = new Map<KeyHash, Set<Waiting>>()
  #credit = 0
  #lateSinceMs = 0
  #lateUntilMs = 0
  #release: NodeJS.Timeout | undefined
  #sampledAtMs: number
  #isBusy = false
  readonly #onChange: (late: boolean) => void
  readonly #now: () => number
  readonly #utilization: () => number

  constructor({
    onChange = () => {},
    now = () => performance.now(),
    utilization = newUtilization(),
  }: PaceOptions = {}) {
    this.#onChange = onChange
    this.#now = now
    this.#utilization = utilization
    this.#sampledAtMs = now()
  }

  /**
   * A claim has returned.
   * @param waitedMs how long the oldest email of the claim that was never tried had waited in the store
   * @param idleShare the share of the connections that had nothing to send, 0 to 1
   */
  noteClaim(waitedMs: number, idleShare: number): void {
    this.#sample()
    const isLate = waitedMs >= lateMs && (idleShare >= idleMin || this.#isBusy)
    if (!isLate) return
    if (!this.#isLate()) this.#lateSinceMs = this.#now()
    this.#lateUntilMs = this.#now() + lateForMs
  }

  /** An email has left the queue. */
  noteEnd(): void {
    this.#credit = Math.min(this.#credit + admittedPerEnd, creditMax)
    this.#admitSome()
  }

  /**
   * Undefined if a request may go to the store at once, else a promise for when it may: keys take turns. It
   * resolves to false after `enqueueDeadlineMs`.
   */
  admit = (key: KeyHash): Promise<boolean> | undefined => {
    if (!this.#isLate() || this.#now() - this.#lateSinceMs < lastingMs) return undefined
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const giveUp = () => {
      this.#remove(key, waiting)
      resolve(false)
    }
    const waiting = { resolve, timer: setTimeout(giveUp, enqueueDeadlineMs) }
    const ofKey = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, ofKey.add(waiting))
    this.#admitSome()
    if (this.#release === undefined) {
      this.#onChange(true)
      this.#awaitEnd()
    }
    return promise
  }

  #isLate = (): boolean => this.#now() < this.#lateUntilMs

  #admitSome(): void {
    while (this.#credit >= 1 && this.#waiting.size > 0) {
      this.#credit -= 1
      this.#admitNext()
    }
  }

  /** Looks four times a second whether mail is in time again, and then admits all. */
  #awaitEnd(): void {
    this.#release = setTimeout(() => {
      if (this.#isLate()) return this.#awaitEnd()
      this.#release = undefined
      while (this.#waiting.size > 0) this.#admitNext()
      this.#onChange(false)
    }, lateForMs).unref()
  }

  #admitNext(): void {
    for (const [key, ofKey] of this.#waiting) {
      this.#waiting.delete(key)
      for (const waiting of ofKey) {
        ofKey.delete(waiting)
        if (ofKey.size > 0) this.#waiting.set(key, ofKey)
        clearTimeout(waiting.timer)
        waiting.resolve(true)
        return
      }
    }
  }

  #remove(key: KeyHash, waiting: Waiting): void {
    const ofKey = this.#waiting.get(key)
    ofKey?.delete(waiting)
    if (ofKey?.size === 0) this.#waiting.delete(key)
  }

  #sample(): void {
    const nowMs = this.#now()
    if (nowMs - this.#sampledAtMs < sampleMs) return
    this.#isBusy = this.#utilization() >= busyMin
    this.#sampledAtMs = nowMs
  }
}

function newUtilization(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
