/** Counts that operations, pages and looks share, because reading them costs time. */
import { appMinutesKept, overMinutes, reportedDays } from '../domain/bounds.ts'
import { dayMs, minuteMs } from '../domain/duration.ts'
import type { ActivityEvent } from '../domain/operator/activity.ts'
import { keepCountsMs, SharedRead } from '../domain/remembered.ts'
import type { Store } from '../store/store.ts'
import { presentCounts } from './activity.ts'
import type { Management } from './context.ts'

/** The counts of states and apps are kept; depth and oldest email are those of now. */
export function newQueueCounts(store: Pick<Store, 'now' | 'readQueueGauge' | 'summariseQueue'>): Management['queue'] {
  const count = async () => ({ countedAt: store.now(), ...(await store.summariseQueue()) })
  const counts = new SharedRead(count, keepCountsMs)
  return { get: async () => ({ ...(await counts.get()), ...(await store.readQueueGauge()) }) }
}

/** Reading them costs more the more apps send. */
export function newPastCounts(store: Pick<Store, 'now' | 'readAppActivity'>): Management['past'] {
  return new SharedRead(async () => {
    const next = Math.floor(store.now() / minuteMs) + 1
    return store.readAppActivity(next - appMinutesKept + 1, next - overMinutes)
  }, keepCountsMs)
}

/** Reading them costs as much as a chart of these days. */
export const newReportCounts = (store: Pick<Store, 'now' | 'readActivity'>): Management['reports'] =>
  new SharedRead(async () => {
    const to = Math.floor(store.now() / minuteMs) + 1
    const read = async (from: number, step: 1 | 60) => {
      const rows = await store.readActivity({ apps: null, from, to, step })
      return rows.filter(({ event }) => isReport(event))
    }
    const hours = await read(to - (reportedDays * dayMs) / minuteMs, 60)
    const lastHour = hours.at(-1)?.minute
    const last = lastHour === undefined ? undefined : (await read(lastHour, 1)).at(-1)
    const { bounced, complained } = presentCounts(hours)
    return { bounced, complained, lastAt: last === undefined ? null : last.minute * minuteMs }
  }, keepCountsMs)

const isReport = (event: ActivityEvent): boolean => event === 'complained' || event.startsWith('bounced:')
