/** The counts of apps in the last two hours, which operations share. */
import { appMinutesKept, overMinutes } from '../domain/bounds.ts'
import { minuteMs } from '../domain/duration.ts'
import { keepCountsMs, SharedRead } from '../domain/remembered.ts'
import type { Store } from '../store/store.ts'
import type { Management } from './context.ts'

/** Reading them costs more the more apps send. */
export function newPastCounts(store: Pick<Store, 'now' | 'readAppActivity'>): Management['past'] {
  return new SharedRead(async () => {
    const next = Math.floor(store.now() / minuteMs) + 1
    return store.readAppActivity(next - appMinutesKept + 1, next - overMinutes)
  }, keepCountsMs)
}
