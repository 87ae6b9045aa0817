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

/** Mail is delayed if it has waited this long when it is claimed for the first time. */
const delayedMs = 200
const idleMin = 0.25
const busyMin = 0.85
/** Event loop time is measured over at least this long. */
const sampleMs = 50
/** For this long after each claim that shows it, the process counts as delaying its mail. */
const delayingForMs = 250
/** Requests wait only once this has lasted: delivery recovers from a start or a short stall by itself. */
const lastingMs = 1000
const releasedPerEnd = 7 / 8
/** Emails that ended while no request waited count for this many requests at most. */
const creditMax = 64

type BackpressureOptions = {
  /** Called when requests begin to wait, and when they no longer do. */
  readonly onChange?: (active: boolean) => void
  readonly now?: () => number
  /** The share of its time that the event loop was busy since the last call, 0 to 1. */
  readonly utilization?: () => number
}

type Waiting = { readonly resolve: (released: boolean) => void; readonly timer: NodeJS.Timeout }

export class Backpressure {
  /** By delivery key, the one served longest ago first. */
  readonly #waiting = new Map<KeyHash, Set<Waiting>>()
  #credit = 0
  #delayingSinceMs = 0
  #delayingUntilMs = 0
  /** A claim that began while mail was delayed has not returned. */
  #isHeld = false
  #endCheck: NodeJS.Timeout | undefined
  #sampledAtMs: number
  #isBusy = false
  readonly #onChange: (active: boolean) => void
  readonly #now: () => number
  readonly #utilization: () => number

  constructor({
    onChange = () => {},
    now = () => performance.now(),
    utilization = newUtilization(),
  }: BackpressureOptions = {}) {
    this.#onChange = onChange
    this.#now = now
    this.#utilization = utilization
    this.#sampledAtMs = now()
  }

  /** A claim begins, which may take long. Requests that wait go on waiting meanwhile. */
  noteClaimBegins(): void {
    this.#isHeld = this.#isDelaying()
  }

  /**
   * The claim has returned, or has failed and shows nothing: 0, 0.
   * @param waitedMs how long the oldest email of the claim that was never tried had waited in the store
   * @param idleShare the share of the connections that had nothing to send, 0 to 1
   */
  noteClaim(waitedMs: number, idleShare: number): void {
    if (waitedMs > 0) this.#sample() // only then does the load matter
    const isDelayed = waitedMs >= delayedMs && (idleShare >= idleMin || this.#isBusy)
    if (isDelayed && !this.#isDelaying()) this.#delayingSinceMs = this.#now()
    if (isDelayed) this.#delayingUntilMs = this.#now() + delayingForMs
    this.#isHeld = false
  }

  /** An email has left the queue. */
  noteEnd(): void {
    this.#credit = Math.min(this.#credit + releasedPerEnd, creditMax)
    this.#releaseSome()
  }

  /**
   * Undefined if a request may go to the store at once, else a promise for when it may: keys take turns. It
   * resolves to false after `enqueueDeadlineMs`.
   */
  waitForTurn = (key: KeyHash): Promise<boolean> | undefined => {
    if (!this.#isDelaying() || this.#now() - this.#delayingSinceMs < lastingMs) return undefined
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const giveUp = () => {
      this.#remove(key, waiting)
      resolve(false)
    }
    const waiting = { resolve, timer: setTimeout(giveUp, enqueueDeadlineMs) }
    const ofKey = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, ofKey.add(waiting))
    this.#releaseSome()
    if (this.#endCheck === undefined) {
      this.#onChange(true)
      this.#awaitEnd()
    }
    return promise
  }

  #isDelaying = (): boolean => this.#isHeld || this.#now() < this.#delayingUntilMs

  #releaseSome(): void {
    while (this.#credit >= 1 && this.#waiting.size > 0) {
      this.#credit -= 1
      this.#releaseNext()
    }
  }

  /** Looks four times a second whether mail is still delayed; if it is not, all requests go on. */
  #awaitEnd(): void {
    this.#endCheck = setTimeout(() => {
      if (this.#isDelaying()) return this.#awaitEnd()
      this.#endCheck = undefined
      while (this.#waiting.size > 0) this.#releaseNext()
      this.#onChange(false)
    }, delayingForMs).unref()
  }

  #releaseNext(): void {
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
