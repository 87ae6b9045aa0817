/**
 * Spreads work that strangers can ask for, such as checking the signature of a large body: one piece in a
 * turn of the event loop, and after a large one time for the requests of others.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

const bytesPerMs = 16 * 1024

export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves when a piece of work of so many bytes may begin. */
  next(bytes: number): Promise<void> {
    const turn = this.#last.then(() => nextTurn())
    const pauseMs = Math.floor(bytes / bytesPerMs)
    this.#last = pauseMs === 0 ? turn : turn.then(() => sleep(pauseMs))
    return turn
  }
}
