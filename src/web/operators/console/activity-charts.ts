/** The charts of what happened lately, and their ranges of time. */
import { formatCount, sumCounts } from '../../../domain/counts.ts'
import { hourMs, minuteMs } from '../../../domain/duration.ts'
import { shortenId } from '../../../domain/id.ts'
import { relayOutcomes } from '../../../domain/operator/activity.ts'
import type { Answer } from '../../../management/operations.ts'
import type { NodeResource } from '../../../management/resources.ts'
import { type Html, html, none } from '../../../templates/html.ts'
import { columnChart, type Series } from './chart.ts'
import { section, took } from './parts.ts'

type Activity = Answer<'activity.show'>
type Item = Activity['items'][number]

export type Range = {
  readonly name: string
  readonly label: string
  readonly step: 'minute' | 'hour'
  readonly steps: number
  readonly minutes: number
  /** From when the query reads. */
  readonly query: (now: number) => { readonly step: 'minute' | 'hour'; readonly from: string }
}

const newRange = (name: string, label: string, step: Range['step'], steps: number): Range => {
  const stepMs = step === 'minute' ? minuteMs : hourMs
  return {
    ...{ name, label, step, steps, minutes: (steps * stepMs) / minuteMs },
    query: (now) => ({ step, from: new Date(now - (steps - 1) * stepMs).toISOString() }),
  }
}

export const ranges = [
  newRange('1h', '1 hour', 'minute', 60),
  newRange('24h', '24 hours', 'hour', 24),
  newRange('7d', '7 days', 'hour', 24 * 7),
] as const

/** The one that an address names; the last hour unless it names one. */
export const chooseRange = (query: URLSearchParams): Range =>
  ranges.find(({ name }) => name === query.get('range')) ?? ranges[0]

/** One value for each step, also for those in which nothing happened. */
function steps({ items }: Activity, { step, steps: length }: Range, now: number) {
  const stepMs = step === 'minute' ? minuteMs : hourMs
  const last = Math.floor(now / stepMs)
  const byStep = new Map(items.map((item) => [Math.floor(Date.parse(item.at) / stepMs), item]))
  const indexes = Array.from({ length }, (_, index) => last - length + 1 + index)
  return {
    stepMs,
    /** When each step begins. */
    starts: indexes.map((index) => index * stepMs),
    columns: indexes.map((index) => cutLabel(new Date(index * stepMs), length)),
    values: (pick: (item: Item) => number) =>
      indexes.map((index) => {
        const item = byStep.get(index)
        return item === undefined ? 0 : pick(item)
      }),
  }
}

/** `16 Nov 14:00`, or `14:05` where all of it is within a day. */
function cutLabel(date: Date, length: number): string {
  const time = date.toISOString().slice(11, 16)
  return length > 60 ? `${date.getUTCDate()} ${date.toUTCString().slice(8, 11)} ${time}` : time
}

const endSeries = (values: (pick: (item: Item) => number) => number[]): Series[] => [
  { name: 'delivered', className: 'c-delivered', values: values((item) => item.delivered) },
  { name: 'deferred', className: 'c-deferred', values: values((item) => item.deferred) },
  { name: 'failed', className: 'c-failed', values: values((item) => sumCounts(item.failed)) },
  { name: 'expired', className: 'c-expired', values: values((item) => item.expired) },
]

/** The moment of the page, the processes whose relays may be down, and the outages that are over. */
type Setting = {
  readonly now: number
  readonly nodes: readonly NodeResource[]
  readonly outages: Answer<'status.show'>['outages']
}

/** The columns in which a relay was down, of those that are known. @param only its name */
function shadeOutages({ starts, stepMs }: ReturnType<typeof steps>, { nodes, now, outages }: Setting, only?: string) {
  const isMeant = (name: string) => only === undefined || name === only
  const over = outages
    .filter(({ relay }) => isMeant(relay))
    .map(({ from, until }) => ({ from: Date.parse(from), until: Date.parse(until) }))
  const lasting = nodes.flatMap(({ alive, relays, seenAt }) =>
    relays
      .filter(({ available, name }) => !available && isMeant(name))
      .map(({ since }) => ({ from: Date.parse(since), until: alive ? now : Date.parse(seenAt) })),
  )
  const isDuring = (start: number) =>
    [...over, ...lasting].some(({ from, until }) => from < start + stepMs && until >= start)
  return { name: 'relay down', columns: starts.flatMap((start, at) => (isDuring(start) ? [at] : [])) }
}

export function emailsChart(activity: Activity, range: Range, setting: Setting): Html {
  const cut = steps(activity, range, setting.now)
  const { columns, values } = cut
  const title = `Outcomes by ${range.step} (UTC)`
  const shaded = shadeOutages(cut, setting)
  return section(title, columnChart({ title, columns, series: endSeries(values), format: formatCount, shaded }))
}

/** By the time of the report; nothing without one in the range. */
export function reportsChart(activity: Activity, range: Range, now: number): Html {
  const { columns, values } = steps(activity, range, now)
  const series = [
    { name: 'bounced', className: 'c-failed', values: values(({ bounced }) => sumCounts(bounced)) },
    { name: 'complaints', className: 'c-expired', values: values((item) => item.complained) },
  ]
  if (series.every((each) => each.values.every((value) => value === 0))) return none
  const title = `Reports after delivery by ${range.step} (UTC)`
  return section(title, columnChart({ title, columns, series, format: formatCount }))
}

/** The busiest relays or keys have a chart. */
const chartsMax = 6

/** The attempts of each relay, the busiest first. */
export function relayCharts(activity: Activity, range: Range, setting: Setting): Html {
  const cut = steps(activity, range, setting.now)
  const { columns, values } = cut
  const busiest = Object.entries(activity.total.relays)
    .toSorted(([, a], [, b]) => sumCounts(b) - sumCounts(a))
    .slice(0, chartsMax)
  const charts = busiest.map(([name]) => {
    const series = relayOutcomes.map((outcome) => ({
      ...{ name: outcome, className: `c-${outcome}` },
      values: values(({ relays }) => relays[name]?.[outcome] ?? 0),
    }))
    const title = `Attempts at ${name} by ${range.step} (UTC)`
    const shaded = shadeOutages(cut, setting, name)
    return section(title, columnChart({ title, columns, series, format: formatCount, shaded }))
  })
  return charts.length === 0 ? none : html`<div class="pair">${charts}</div>`
}

/** The accepted requests of each key, the busiest first. @param names by the ids of keys */
export function keyCharts(activity: Activity, range: Range, now: number, names: ReadonlyMap<string, string>): Html {
  const { columns, values } = steps(activity, range, now)
  const busiest = Object.entries(activity.total.keys)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, chartsMax)
  const charts = busiest.map(([key]) => {
    const series = [{ name: 'accepted', className: 'c-delivered', values: values(({ keys }) => keys[key] ?? 0) }]
    const title = `Accepted with ${names.get(key) ?? shortenId(key)} by ${range.step} (UTC)`
    return section(title, columnChart({ title, columns, series, format: formatCount }))
  })
  return charts.length === 0 ? none : html`<div class="pair">${charts}</div>`
}

/** Lengths of time whose half is as round as they are, in milliseconds. */
const lengths = [10, 20, 40, 100, 200, 400, 1000, 2000, 4000, 10_000, 20_000, 60_000].concat(
  [2, 4, 10, 20, 60].map((minutes) => minutes * minuteMs),
)

export const activityCharts = (activity: Activity, range: Range, setting: Setting): Html =>
  html`${emailsCharts(activity, range, setting)}${reportsChart(activity, range, setting.now)}`

function emailsCharts(activity: Activity, range: Range, setting: Setting): Html {
  // Times are counted only for the whole service.
  if (activity.items.every(({ p95Ms }) => p95Ms === null)) return emailsChart(activity, range, setting)
  const { columns, values } = steps(activity, range, setting.now)
  const title = 'Time to relay'
  const series = [
    { name: '95th percentile', className: 'c-most', values: values(({ p95Ms }) => p95Ms ?? 0) },
    { name: 'median', className: 'c-time', values: values(({ p50Ms }) => p50Ms ?? 0) },
  ]
  return html`<div class="pair">${emailsChart(activity, range, setting)}
${section(title, columnChart({ title, columns, series, format: took, layered: true, tops: lengths }))}</div>`
}
