/** Mocked timers, `Date` and `performance.now`: tests of time limits need not wait. */
import type { TestContext } from 'node:test'

export type VirtualTime = {
  now(): number
  /** Advances time until the promise settles; throws after `ms`. */
  settle<T>(promise: Promise<T>, ms: number): Promise<T>
}

export function virtualTime(t: TestContext, startMs = 1_800_000_000_000): VirtualTime {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: startMs })
  t.mock.method(performance, 'now', () => Date.now() - startMs)
  const now = () => Date.now() - startMs
  return {
    now,
    async settle(promise, ms) {
      let settled = false
      const done = () => {
        settled = true
      }
      promise.then(done, done)
      for (const endsAt = now() + ms; ; t.mock.timers.tick(1)) {
        await new Promise(setImmediate)
        if (settled) return promise
        if (now() > endsAt) throw new Error(`not settled within ${ms} ms of virtual time`)
      }
    },
  }
}
