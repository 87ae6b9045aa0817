/** Finds what was wrong lately and is over: pure, from counts by the minute and from the processes. */
import { appMinutesKept } from '../../domain/bounds.ts'
import { counted } from '../../domain/counts.ts'
import { describeDuration, minuteMs } from '../../domain/duration.ts'
import type { ActivityRow } from '../../domain/operator/activity.ts'
import { presentCounts } from '../activity.ts'
import type { NodeResource } from '../resources.ts'
import { type AttentionKind, failedMin, failedShare } from './condition.ts'

export type Earlier = {
  readonly kind: AttentionKind
  readonly message: string
  /** Milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

type Minutes = readonly Pick<ActivityRow, 'minute' | 'event' | 'count'>[]

/** When the last outage of a relay ended; 0 if none is known. Links that expired until then are its. */
export const findOutageEnd = (nodes: readonly NodeResource[]): number =>
  Math.max(
    0,
    ...nodes.flatMap(({ relays }) =>
      relays.map(({ lastOutage }) => Date.parse(lastOutage?.until ?? '') || 0),
    ),
  )

type Bounds = {
  readonly nowMs: number
  /** The first minute whose expired links are judged as now; `failedFrom`: whose failures are. */
  readonly expiredFrom: number
  readonly failedFrom: number
}

/**
 * Newest first.
 * @param minutes the counts of the last `appMinutesKept`
 */
export const findEarlier = (
  nodes: readonly NodeResource[],
  minutes: Minutes,
  bounds: Bounds,
): readonly Earlier[] =>
  [
    ...findOutages(nodes, bounds.nowMs),
    ...findExpired(minutes.filter(({ minute }) => minute < bounds.expiredFrom)),
    ...findFailed(minutes.filter(({ minute }) => minute < bounds.failedFrom)),
  ].toSorted((a, b) => b.until - a.until)

/** An outage that several processes saw alike is one. */
function findOutages(nodes: readonly NodeResource[], nowMs: number): Earlier[] {
  const outages = nodes.flatMap(({ relays }) =>
    relays.flatMap(({ lastOutage, name }): Earlier[] => {
      if (lastOutage === null) return []
      const [from, until] = [Date.parse(lastOutage.from), Date.parse(lastOutage.until)]
      if (until < nowMs - appMinutesKept * minuteMs) return []
      const message = `The relay ${name} did not answer for ${describeDuration(until - from)}: ${lastOutage.reason}`
      return [{ kind: 'relay_down', message, from, until }]
    }),
  )
  return [...new Map(outages.map((outage) => [outage.message, outage])).values()]
}

function findExpired(minutes: Minutes): Earlier[] {
  const rows = minutes.filter(({ event }) => event === 'expired')
  const message = `${counted(sumRows(rows), 'link')} expired before the email could be sent.`
  return rows.length === 0 ? [] : [{ kind: 'links_expired', message, ...readSpan(rows) }]
}

function findFailed(minutes: Minutes): Earlier[] {
  const rows = minutes.filter(({ event }) => event.startsWith('failed:'))
  const failed = sumRows(rows)
  const ended = failed + presentCounts(minutes).delivered
  if (failed < failedMin || failed <= failedShare * ended) return []
  return [{ kind: 'mail_failed', message: `${failed} of ${ended} emails failed.`, ...readSpan(rows) }]
}

const sumRows = (rows: Minutes): number => rows.reduce((sum, { count }) => sum + count, 0)

/** From the begin of the first minute to the end of the last one. */
const readSpan = (rows: Minutes): Pick<Earlier, 'from' | 'until'> => ({
  from: Math.min(...rows.map(({ minute }) => minute)) * minuteMs,
  until: Math.max(...rows.map(({ minute }) => minute + 1)) * minuteMs,
})
