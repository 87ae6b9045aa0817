/**
 * Pages take turns, so that their readers do not delay mail. While others wait, each turn is followed by a
 * rest, in which the process does its other work.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a rest is: this many times the turn before it. Measured by `npm run bench -- console`. */
const restFactor = 3
/** A page that takes longer waits for the database, and others need not wait for it. */
const turnMaxMs = 250

export type TakeTurn = <Value>(run: () => Promise<Value> | Value) => Promise<Value>

type Times = { readonly rest?: (ms: number) => Promise<unknown>; readonly turnMs?: number }

/**
 * At most `max` take their turns at a time; the others wait in their order.
 * @param times.rest waits for a number of milliseconds
 */
export function newTurns(max: number, { rest = sleep, turnMs = turnMaxMs }: Times = {}): TakeTurn {
  let free = max
  const waiting: (() => void)[] = []
  const passOn = async (tookMs: number): Promise<void> => {
    if (waiting.length > 0) await rest(restFactor * tookMs)
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
  return async (run) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    else free -= 1
    const begunAtMs = performance.now()
    const end = () => void passOn(performance.now() - begunAtMs)
    let timer: NodeJS.Timeout | null = setTimeout(() => {
      timer = null
      end()
    }, turnMs)
    try {
      return await run()
    } finally {
      if (timer !== null) {
        clearTimeout(timer)
        end()
      }
    }
  }
}
