/** Waits for a condition instead of a fixed time. */
import { setTimeout as sleep } from 'node:timers/promises'

/** An operator may send ten requests a second, and thirty at once. */
const pauseMaxMs = 150

/**
 * Calls `ask` until it returns neither null, undefined nor false, at first often and then less so. Throws
 * after `withinMs`.
 */
export async function eventually<T>(ask: () => T | Promise<T>, withinMs = 20_000): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs + 5, pauseMaxMs)) {
    const answer = await ask()
    if (answer !== null && answer !== undefined && answer !== false) return answer as NonNullable<T>
    if (performance.now() > endMs) throw new Error(`not so within ${withinMs} ms: ${ask}`)
    await sleep(pauseMs)
  }
}

/**
 * Calls `work` so many times, some at once: each call has a deadline of the store's own, which a slow machine
 * would miss for a thousand at once.
 */
export async function repeat<T>(count: number, work: (n: number) => Promise<T>, atOnce = 50): Promise<T[]> {
  const results: T[] = []
  while (results.length < count) {
    const begun = results.length
    const length = Math.min(atOnce, count - begun)
    results.push(...(await Promise.all(Array.from({ length }, (_, n) => work(begun + n)))))
  }
  return results
}
