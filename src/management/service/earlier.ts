/** Finds what was wrong lately and is over: pure, from counts by the minute and from the processes. */
import { appMinutesKept } from '../../domain/bounds.ts'
import { counted } from '../../domain/counts.ts'
import { describeDuration, minuteMs } from '../../domain/duration.ts'
import type { ActivityRow } from '../../domain/operator/activity.ts'
import { presentCounts } from '../activity.ts'
import type { NodeResource } from '../resources.ts'
import { type AttentionKind, nameAll } from './condition.ts'
import { type TroubleKind, troubles } from './trouble.ts'

export type Earlier = {
  readonly kind: AttentionKind
  readonly message: string
  /** The slugs of the apps that it concerned; none for the whole service. */
  readonly apps: readonly string[]
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

/** Apps with a trouble of one cause. */
export type PastTrouble = {
  readonly kind: TroubleKind
  readonly slugs: readonly string[]
  readonly reply: string | null
  readonly minutes: Minutes
}

export type Past = {
  readonly nowMs: number
  readonly nodes: readonly NodeResource[]
  /** The counts of the last `appMinutesKept` whose expired links are not judged as now. */
  readonly minutes: Minutes
  /** The slugs of the apps whose links expired in these minutes. */
  readonly expired: readonly string[]
  readonly troubles: readonly PastTrouble[]
}

/** Newest first. */
export function findEarlier(past: Past): readonly Earlier[] {
  const outages = findOutages(past)
  const expiredRows = past.minutes.filter(({ event }) => event === 'expired')
  const elsewhere = expiredRows.filter((row) => !outages.some((outage) => isDuring(row, outage)))
  const found = [...outages, ...findExpired(elsewhere, past.expired), ...past.troubles.flatMap(describePast)]
  return found.toSorted((a, b) => b.until - a.until)
}

type Span = Pick<Earlier, 'from' | 'until'>

/** Its mail may have waited for a minute more. */
const isDuring = ({ minute }: Minutes[number], { from, until }: Span): boolean =>
  (minute + 1) * minuteMs > from && (minute - 1) * minuteMs <= until

/** An outage that several processes saw alike is one. */
function findOutages({ nodes, nowMs, minutes }: Past): Earlier[] {
  const outages = nodes.flatMap(({ relays }) =>
    relays.flatMap(({ lastOutage, name }): Earlier[] => {
      if (lastOutage === null) return []
      const span = { from: Date.parse(lastOutage.from), until: Date.parse(lastOutage.until) }
      if (span.until < nowMs - appMinutesKept * minuteMs) return []
      const lost = sumRows(minutes.filter((row) => row.event === 'expired' && isDuring(row, span)))
      const lasted = describeDuration(span.until - span.from)
      const reason = lastOutage.reason.replace(/\.$/, '')
      const cost = lost === 0 ? 'No link' : counted(lost, 'link')
      const message = `The relay ${name} did not answer for ${lasted}: ${reason}. ${cost} expired meanwhile.`
      return [{ kind: 'relay_down', message, apps: [], ...span }]
    }),
  )
  return [...new Map(outages.map((outage) => [outage.message, outage])).values()]
}

function findExpired(rows: Minutes, apps: readonly string[]): Earlier[] {
  if (rows.length === 0) return []
  const whose = apps.length === 0 ? '' : ` from ${nameAll(apps)}`
  const message = `${counted(sumRows(rows), 'link')}${whose} expired before the email could be sent.`
  return [{ kind: 'links_expired', message, apps, ...findSpan(rows) }]
}

function describePast({ kind, slugs, reply, minutes }: PastTrouble): Earlier[] {
  const rows = minutes.filter(({ event }) => troubles[kind].isOf(event))
  if (rows.length === 0) return []
  const message = troubles[kind].describe(slugs, presentCounts(minutes), { when: '', reply })
  return [{ kind, message, apps: slugs, ...findSpan(rows) }]
}

const sumRows = (rows: Minutes): number => rows.reduce((sum, { count }) => sum + count, 0)

/** From the begin of the first minute to the end of the last one. */
const findSpan = (rows: Minutes): Span => ({
  from: Math.min(...rows.map(({ minute }) => minute)) * minuteMs,
  until: Math.max(...rows.map(({ minute }) => minute + 1)) * minuteMs,
})
