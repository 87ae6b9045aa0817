/** Waits for a condition instead of a fixed time. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `ask` until it returns neither null, undefined nor false. Throws after `withinMs`. */
export async function eventually<T>(ask: () => T | Promise<T>, withinMs = 20_000): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== null && answer !== undefined && answer !== false) return answer as NonNullable<T>
    if (performance.now() > endMs) throw new Error(`not so within ${withinMs} ms: ${ask}`)
    await sleep(5)
  }
}
