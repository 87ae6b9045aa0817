/** The counts of the queue, which operations, pages and looks share. */
import { minuteMs } from '../domain/duration.ts'
import type { Store } from '../store/store.ts'
import type { Management } from './operation/operation.ts'
import { SharedRead } from './shared-read.ts'

const costlyMs = 20

/**
 * Counting costs more the deeper the queue is. A costly count is kept so long that it delays fewer than one
 * request for an email in a hundred, but no longer than a minute.
 */
export const keepCountsMs = (tookMs: number): number =>
  Math.min(minuteMs, tookMs > costlyMs ? 200 * tookMs : 10 * tookMs)

/** The counts of states and apps are kept; depth and oldest email are those of now. */
export function newQueueCounts(
  store: Pick<Store, 'now' | 'readQueueGauge' | 'summariseQueue'>,
): Management['queue'] {
  const count = async () => ({ countedAt: store.now(), ...(await store.summariseQueue()) })
  const counts = new SharedRead(count, keepCountsMs)
  return { get: async () => ({ ...(await counts.get()), ...(await store.readQueueGauge()) }) }
}
