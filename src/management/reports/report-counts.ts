/** The bounces and complaints of the last days, by the counts behind charts, and when the last one came. */
import { reportedDays } from '../../domain/bounds.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import type { ActivityEvent } from '../../domain/operator/activity.ts'
import { keepCountsMs, SharedRead } from '../../domain/remembered.ts'
import type { Store } from '../../store/store.ts'
import { presentCounts } from '../activity.ts'
import type { Management } from '../context.ts'

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
