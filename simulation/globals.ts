/**
 * Replaces what the code of Postern reads from its machine: clocks, timers, randomness, threads and the
 * network. So the code under test has no part for simulations; it imports what it always imports.
 */
import http from 'node:http'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type { Network } from './network.ts'
import type { Planned, World } from './world.ts'

const load = createRequire(import.meta.url)

/** The value of `setTimeout`. */
class Timer {
  readonly #world: World
  readonly #run: () => void
  readonly #ms: number
  readonly #repeats: boolean
  #planned: Planned

  constructor(world: World, run: () => void, { ms, repeats = false }: { ms: number; repeats?: boolean }) {
    this.#world = world
    this.#run = run
    this.#ms = ms >= 1 && ms <= 2 ** 31 - 1 ? ms : 1 // as Node does
    this.#repeats = repeats
    this.#planned = this.#plan()
  }

  #plan = (): Planned =>
    this.#world.after(this.#ms, () => {
      if (this.#repeats) this.#planned = this.#plan()
      this.#run()
    })

  refresh(): this {
    this.close()
    this.#planned = this.#plan()
    return this
  }

  close(): void {
    this.#planned.isCancelled = true
  }

  ref = (): this => this
  unref = (): this => this
  hasRef = (): boolean => true
}

const clear = (timer: unknown): void => {
  if (timer instanceof Timer) timer.close()
}

type Run = (...values: unknown[]) => void
type WaitOptions = { readonly signal?: AbortSignal }

function newTimers(world: World) {
  const setTimeout = (run: Run, ms = 1, ...values: unknown[]) => new Timer(world, () => run(...values), { ms })
  const setInterval = (run: Run, ms = 1, ...values: unknown[]) =>
    new Timer(world, () => run(...values), { ms, repeats: true })
  const setImmediate = (run: Run, ...values: unknown[]) => {
    const planned = world.after(0, () => run(...values))
    return { planned, ref: () => {}, unref: () => {}, hasRef: () => true }
  }
  const clearImmediate = (immediate: ReturnType<typeof setImmediate> | undefined) => {
    if (immediate !== undefined) immediate.planned.isCancelled = true
  }
  return { setTimeout, setInterval, setImmediate, clearTimeout: clear, clearInterval: clear, clearImmediate }
}

/** Those of `node:timers/promises`. */
function newWaits(world: World) {
  const wait = (ms: number, value: unknown, { signal }: WaitOptions = {}) =>
    new Promise((resolve, reject) => {
      const fail = () => {
        planned.isCancelled = true
        reject(new DOMException('The operation was aborted', { name: 'AbortError', cause: signal?.reason }))
      }
      const planned = world.after(ms, () => {
        signal?.removeEventListener('abort', fail)
        resolve(value)
      })
      if (signal?.aborted) fail()
      else signal?.addEventListener('abort', fail, { once: true })
    })
  return {
    setTimeout: (ms = 1, value?: unknown, options?: WaitOptions) => wait(Math.max(1, ms), value, options),
    setImmediate: (value?: unknown, options?: WaitOptions) => wait(0, value, options),
  }
}

function newDate(world: World): DateConstructor {
  const RealDate = Date
  return class SimulatedDate extends RealDate {
    constructor(...values: []) {
      // `new Date()` is now; the types name one of the other ways only.
      if (values.length === 0) super(world.wallMs())
      else super(...values)
    }
    static override now = (): number => world.wallMs()
  } as DateConstructor
}

function newRandomness(world: World) {
  const random = world.random('code')
  const randomBytes = (size: number, done?: (error: null, bytes: Buffer) => void) => {
    const bytes = Buffer.alloc(size)
    random.fill(bytes)
    if (done !== undefined) world.after(0, () => done(null, bytes))
    return bytes
  }
  const randomUUID = () => {
    const hex = randomBytes(16).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
  }
  const randomInt = (low: number, high?: number) =>
    Math.floor(high === undefined ? random.between(0, low) : random.between(low, high))
  const randomFillSync = <Bytes extends Uint8Array>(bytes: Bytes): Bytes => {
    random.fill(bytes)
    return bytes
  }
  return { random, randomBytes, randomUUID, randomInt, randomFillSync }
}

/** Call it once in a thread, before Postern runs there. */
export function replaceGlobals(world: World, network: Network): void {
  const timers = newTimers(world)
  Object.assign(globalThis, timers, { Date: newDate(world) })
  replaceModule('node:timers', timers)
  replaceModule('node:timers/promises', newWaits(world))
  performance.now = () => world.nowMs
  // The processor is never busy.
  performance.eventLoopUtilization = () => ({ idle: 1, active: 0, utilization: 0 })
  AbortSignal.timeout = (ms: number) => {
    const controller = new AbortController()
    const late = () => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
    world.after(ms, late)
    return controller.signal
  }
  const { random, ...randomness } = newRandomness(world)
  Math.random = random.next
  replaceModule('node:crypto', randomness)
  const { randomFillSync: getRandomValues, randomUUID } = randomness
  Object.assign(globalThis.crypto, { getRandomValues, randomUUID })
  replaceModule('node:net', { connect: network.connect, createConnection: network.connect })
  Object.assign(http.Agent.prototype, { createConnection: network.connect })
}

/** Replaces exports of a module of Node, also for those who have imported it. */
export function replaceModule(name: string, exports: Readonly<Record<string, unknown>>): void {
  Object.assign(load(name), exports)
  syncBuiltinESMExports()
}
