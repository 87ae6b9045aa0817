/** Shows what happened lately, by minute or by hour, and counts emails and refusals by day. */
import { Type } from 'typebox'
import { activityDays, appMinutesKept, keepDays } from '../../domain/bounds.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import { recordEveryMs } from '../../domain/operator/activity.ts'
import { type Issue, type Parsed, parsed } from '../../domain/parsed.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import { ActivityCounts, ActivityItem, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import { chooseApps } from '../operation/find-target.ts'
import { operation } from '../operation/operation.ts'
import { done, invalid } from '../operation/result.ts'
import { appName, appStatus, closed, time, timestamp } from '../operation/schema.ts'
import { iso, newPageSchema, presentUsage, UsageResource } from '../resources.ts'

const stepMinutes = { minute: 1, hour: 60 } as const
type Step = keyof typeof stepMinutes

/** Shown unless the request says otherwise. */
const usualSteps = { minute: 60, hour: 24 } as const
const stepsMax = 1440

export const showActivity = operation({
  method: 'GET',
  path: '/v1/activity',
  role: 'reader',
  summary: `Counts requests, outcomes and relay replies, by minute or by hour; kept for ${activityDays} days, the minutes of an app for ${appMinutesKept / 60} hours. Those of the last ${recordEveryMs / 1000} seconds may be missing, and those that a process had not written when it died.`,
  query: closed({
    app: Type.Optional(appName()),
    step: Type.Optional(Type.Enum(['minute', 'hour'])),
    from: timestamp(`Default: an hour before \`to\`; with the step hour, ${usualSteps.hour} hours before it.`),
    to: timestamp('Default: now.'),
  }),
  answer: closed({
    step: Type.Enum(['minute', 'hour']),
    from: time(),
    to: time(),
    total: ActivityCounts,
    items: Type.Array(ActivityItem, { description: 'Steps in which nothing happened are left out.' }),
  }),
  errors: ['not_found'],
  async run(context, { query }) {
    const apps = await chooseApps(context, query.app)
    if (!apps.ok) return apps
    const step = query.step ?? (apps.value === null ? 'minute' : 'hour')
    const now = context.store.now()
    const range = readRange(query, step, now)
    if (!range.ok) return invalid(range.issues)
    const { from, to } = range.value
    if (apps.value !== null && step === 'minute' && from < Math.floor(now / minuteMs) - appMinutesKept)
      return invalid([stepIssue(`The minutes of an app are kept for ${appMinutesKept / 60} hours: use step=hour.`)])
    const rows = await context.store.readActivity({ apps: apps.value, from, to, step: stepMinutes[step] })
    const byStep = [...Map.groupBy(rows, ({ minute }) => minute)].toSorted(([a], [b]) => a - b)
    return done({
      step,
      from: iso(from * minuteMs),
      to: iso(to * minuteMs),
      total: presentCounts(rows),
      items: byStep.map(([minute, counted]) => ({ at: iso(minute * minuteMs), ...presentCounts(counted) })),
    })
  },
})

const stepIssue = (message: string): Issue => ({ field: 'step', code: 'malformed_value', message })

type Range = { readonly from: number; readonly to: number }

/** Whole steps, in minutes since 1970; the step that `to` falls into is a part of it. */
function readRange(query: { readonly from?: string; readonly to?: string }, step: Step, nowMs: number): Parsed<Range> {
  const minutes = stepMinutes[step]
  const floor = (ms: number) => Math.floor(ms / minuteMs / minutes) * minutes
  const to = query.to === undefined ? parsed(nowMs) : parseTimestamp(query.to, 'to')
  const from = query.from === undefined ? null : parseTimestamp(query.from, 'from')
  const issues = [to, from].flatMap((part) => (part === null || part.ok ? [] : part.issues))
  if (!to.ok || from?.ok === false) return { ok: false, issues }
  const end = floor(to.value) + minutes
  const begin = from === null ? end - usualSteps[step] * minutes : floor(from.value)
  if (begin < end && end - begin <= stepsMax * minutes) return parsed({ from: begin, to: end })
  const message = `It must be earlier than to, and at most ${stepsMax} steps earlier.`
  return { ok: false, issues: [{ field: 'from', code: 'malformed_value', message }] }
}

export const showUsage = operation({
  method: 'GET',
  path: '/v1/apps/{app}/usage',
  role: 'reader',
  summary: `Counts the emails and refusals of an app by day (UTC) for the last ${keepDays} days, newest first.`,
  answer: newPageSchema(UsageResource),
  run: async ({ store }, _input, { id }) => done({ items: (await store.readUsage(id)).map(presentUsage), next: null }),
})

const { day: _, ...counts } = UsageResource.properties

export const listUsage = operation({
  method: 'GET',
  path: '/v1/usage',
  role: 'reader',
  summary: 'Counts the emails and refusals of each app today (UTC), with its daily limit.',
  answer: closed({
    day: Type.String({ format: 'date' }),
    endsAt: Type.String({ format: 'date-time' }),
    items: Type.Array(
      closed({
        app: Type.String(),
        slug: Type.String(),
        name: Type.String(),
        status: appStatus(),
        dailyLimit: Type.Integer(),
        ...counts,
      }),
    ),
  }),
  async run({ store, access }) {
    const today = Math.floor(store.now() / dayMs)
    const usage = await store.readUsageToday(access.apps && [...access.apps])
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    const items = apps.map(({ id, slug, status, settings }) => {
      const { day: _day, ...counted } = presentUsage({ day: '', counts: usage.get(id) ?? {} })
      return { app: id, slug, name: settings.name, status, dailyLimit: settings.limits.daily, ...counted }
    })
    return done({ day: iso(today * dayMs).slice(0, 10), endsAt: iso((today + 1) * dayMs), items })
  },
})
