/** The counts of the queue, which operations, pages and looks share. */

import { keepCountsMs, SharedRead } from '../domain/remembered.ts'
import type { Store } from '../store/store.ts'
import type { Management } from './context.ts'

/** The counts of states and apps are kept; depth and oldest email are those of now. */
export function newQueueCounts(store: Pick<Store, 'now' | 'readQueueGauge' | 'summariseQueue'>): Management['queue'] {
  const count = async () => ({ countedAt: store.now(), ...(await store.summariseQueue()) })
  const counts = new SharedRead(count, keepCountsMs)
  return { get: async () => ({ ...(await counts.get()), ...(await store.readQueueGauge()) }) }
}
