/**
 * Pages take turns, so that their readers do not delay mail. While others wait, each turn is followed by a
 * rest, in which the process does its other work.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a rest is: this many times the turn before it. Measured by `npm run bench -- console`. */
const restFactor = 3

export type TakeTurn = <Value>(run: () => Promise<Value> | Value) => Promise<Value>

/**
 * At most `max` run at a time; the others wait in their order.
 * @param rest waits for a number of milliseconds
 */
export function newTurns(max: number, rest: (ms: number) => Promise<unknown> = sleep): TakeTurn {
  let free = max
  const waiting: (() => void)[] = []
  const end = async (tookMs: number): Promise<void> => {
    if (waiting.length > 0) await rest(restFactor * tookMs)
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
  return async (run) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    else free -= 1
    const begunAtMs = performance.now()
    try {
      return await run()
    } finally {
      void end(performance.now() - begunAtMs)
    }
  }
}
