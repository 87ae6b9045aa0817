/** Waiting for something to become true, instead of for time to pass. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Asks until the answer is neither null, undefined nor false; throws after `withinMs`. */
export async function eventually<T>(ask: () => T | Promise<T>, withinMs = 20_000): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== null && answer !== undefined && answer !== false) return answer as NonNullable<T>
    if (performance.now() > endMs) throw new Error(`not so within ${withinMs} ms: ${ask}`)
    await sleep(5)
  }
}
