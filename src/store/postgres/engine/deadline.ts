/** Deadlines are kept by Postern, not by the server. */
import { StoreUnavailable } from '../../store.ts'

/** Rejects with `StoreUnavailable` if `endMs` (of `performance.now()`) passes first. */
export async function within<T>(promise: Promise<T>, endMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    const ms = Math.max(0, endMs - performance.now())
    timer = setTimeout(() => reject(new StoreUnavailable('the database did not answer in time')), ms)
  })
  promise.catch(() => {}) // no unhandled rejection if it fails after the deadline
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
