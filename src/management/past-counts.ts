/** The counts of apps in the last two hours, which operations share. */
import { appMinutesKept, overMinutes } from '../domain/bounds.ts'
import { minuteMs } from '../domain/duration.ts'
import type { ActivityRow } from '../domain/operator/activity.ts'
import type { Store } from '../store/store.ts'
import { keepCountsMs, SharedRead } from './shared-read.ts'

export type AppRows = readonly Pick<ActivityRow, 'app' | 'event' | 'count'>[]

/** The counts of every app but of the last minutes, without which a trouble is over. */
export type PastCounts = {
  /** The first minute since 1970, and the one after the last. */
  readonly from: number
  readonly to: number
  readonly rows: AppRows
}

/** They cost more the more apps there are, and are kept like the counts of the queue. */
export function newPastCounts(store: Pick<Store, 'now' | 'readAppActivity'>): SharedRead<PastCounts> {
  return new SharedRead(async () => {
    const next = Math.floor(store.now() / minuteMs) + 1
    const [from, to] = [next - appMinutesKept + 1, next - overMinutes]
    return { from, to, rows: await store.readAppActivity(from, to) }
  }, keepCountsMs)
}
