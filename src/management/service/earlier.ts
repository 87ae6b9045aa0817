/** Finds what was wrong lately and is over: pure, from counts by the minute and from the processes. */
import { appMinutesKept } from '../../domain/bounds.ts'
import { counted, nameAll } from '../../domain/counts.ts'
import type { Outage } from '../../domain/delivery/relay-state.ts'
import { isReply } from '../../domain/delivery/smtp-reply.ts'
import { describeDuration, minuteMs } from '../../domain/duration.ts'
import type { ActivityRow } from '../../domain/operator/activity.ts'
import { withAdvice } from '../../services/advice.ts'
import { type AppConditionKind, appConditions, type Counts } from './app-conditions.ts'
import type { AttentionKind } from './condition.ts'
import { firstMinuteAfter } from './outages.ts'

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

/** Apps that had a condition of one cause, with their counts in its time. */
export type PastCondition = Span & {
  readonly kind: AppConditionKind
  readonly slugs: readonly string[]
  readonly reply: string | null
  readonly counts: Counts
}

export type Past = {
  readonly nowMs: number
  readonly outages: readonly Outage[]
  /** The counts of the last `appMinutesKept` whose expired links are not judged as now. */
  readonly minutes: Minutes
  /** The slugs of the apps whose links expired in these minutes. */
  readonly expired: readonly string[]
  readonly conditions: readonly PastCondition[]
}

/** Newest first. */
export function findEarlier(past: Past): readonly Earlier[] {
  const outages = findOutages(past)
  const expiredRows = past.minutes.filter(({ event }) => event === 'expired')
  const elsewhere = expiredRows.filter((row) => !outages.some((outage) => isDuring(row, outage)))
  // The counts do not tell whose links expired in an outage.
  const whose = elsewhere.length === expiredRows.length ? past.expired : []
  const found = [...outages, ...findExpired(elsewhere, whose), ...past.conditions.map(describePast)]
  return found.toSorted((a, b) => b.until - a.until)
}

type Span = Pick<Earlier, 'from' | 'until'>

const isDuring = ({ minute }: Minutes[number], { from, until }: Span): boolean =>
  (minute + 1) * minuteMs > from && minute < firstMinuteAfter(until)

function findOutages({ nowMs, minutes, outages }: Past): Earlier[] {
  const recent = outages.filter(({ until }) => until >= nowMs - appMinutesKept * minuteMs)
  // Two outages may share a minute, whose links count once.
  const left = new Set(minutes.filter(({ event }) => event === 'expired'))
  return recent.map(({ from, reason: said, relay, until }) => {
    const lasted = describeDuration(until - from)
    const reason = said.replace(/\.$/, '')
    const fault = isReply(said) ? 'refused mail' : 'did not answer'
    const why = reason === '' ? '' : `: ${withAdvice(reason)}`
    const own = [...left].filter((row) => isDuring(row, { from, until }))
    for (const row of own) left.delete(row)
    const lost = sumRows(own)
    const cost = lost === 0 ? 'No link' : counted(lost, 'link')
    const which = relay === '' ? 'A relay' : `The relay ${relay}`
    const message = `${which} ${fault} for ${lasted}${why}. ${cost} expired meanwhile.`
    return { kind: 'relay_down', message, apps: [], from, until }
  })
}

function findExpired(rows: Minutes, apps: readonly string[]): Earlier[] {
  if (rows.length === 0) return []
  const whose = apps.length === 0 ? '' : ` from ${nameAll(apps)}`
  const message = `${counted(sumRows(rows), 'link')}${whose} expired before the email could be sent.`
  return [{ kind: 'links_expired', message, apps, ...findSpan(rows) }]
}

function describePast({ kind, slugs, reply, counts, from, until }: PastCondition): Earlier {
  const message = appConditions[kind].describe(slugs, counts, { when: null, reply })
  return { kind, message, apps: slugs, from, until }
}

const sumRows = (rows: Minutes): number => rows.reduce((sum, { count }) => sum + count, 0)

/** From the start of the first minute to the end of the last one. */
const findSpan = (rows: Minutes): Span => ({
  from: Math.min(...rows.map(({ minute }) => minute)) * minuteMs,
  until: Math.max(...rows.map(({ minute }) => minute + 1)) * minuteMs,
})
