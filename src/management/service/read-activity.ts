/** Reads the counts of the last two hours: what is judged as now, and what was wrong before. */
import type { App } from '../../domain/app/app.ts'
import { appMinutesKept } from '../../domain/bounds.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import type { ActivityRow } from '../../domain/operator/activity.ts'
import { type ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import { iso, type NodeResource } from '../resources.ts'
import { type Ends, isFailing, latelyMinutes } from './condition.ts'
import { type FailedApps, findEarlier, findOutageEnd } from './earlier.ts'

const hourMinutes = 60

/** The latest counts of the mail that the access sees, and what was wrong before. */
export async function readActivity(context: Context, nodes: readonly NodeResource[], apps: readonly App[]) {
  const { store, access } = context
  const nowMs = store.now()
  const to = Math.floor(nowMs / minuteMs) + 1
  const begin = to - latelyMinutes
  const first = to - appMinutesKept + 1
  const minutes = await store.readActivity({
    apps: access.apps && [...access.apps],
    from: first,
    to,
    step: 1,
  })
  const since = (minute: number) => minutes.filter((row) => row.minute >= minute)
  const afterOutage = Math.max(begin, Math.floor(findOutageEnd(nodes) / minuteMs) + 1)
  const countsSince = async (minute: number) =>
    (await store.readAppActivity(minute)).filter(({ app }) => app !== null && isInScope(access, app))
  const recent = await countsSince(begin)
  const expiredSince = async (minute: number) => {
    if (!since(minute).some(({ event }) => event === 'expired')) return new Map<AppId, number>()
    const rows = minute === begin ? recent : await countsSince(minute)
    const expired = rows.filter(({ event }) => event === 'expired')
    return new Map(expired.map(({ app, count }) => [app as AppId, count]))
  }
  const expired = await expiredSince(afterOutage)
  const byApp = countByApp(recent)
  // Most of the time nothing failed before, and one read less will do.
  const hadFailures = minutes.some((row) => row.minute < begin && row.event.startsWith('failed:'))
  const failed = hadFailures
    ? await readFailed(store, {
        apps,
        first,
        begin,
        whole: countByApp(await countsSince(first)),
        recent: byApp,
      })
    : []
  const everExpired = await expiredSince(first)
  const earlier = findEarlier({
    nowMs,
    // Outages name relays.
    nodes: access.apps === null ? nodes : [],
    minutes: minutes.filter(({ minute }) => minute < afterOutage),
    expired: apps
      .filter(({ id }) => (everExpired.get(id) ?? 0) > (expired.get(id) ?? 0))
      .map(({ slug }) => slug),
    failed,
  })
  return {
    now: { lately: presentCounts(since(begin)), byApp, expired, replies: await readReplies(store, byApp) },
    lastHour: presentCounts(since(to - hourMinutes)),
    earlier: earlier.map(({ apps: slugs, from, until, ...what }) => ({
      ...what,
      apps: [...slugs],
      from: iso(from),
      until: iso(until),
    })),
  }
}

type CountsByApp = ReadonlyMap<AppId, ActivityCounts>

const countByApp = (rows: readonly Pick<ActivityRow, 'app' | 'event' | 'count'>[]): CountsByApp =>
  new Map([...Map.groupBy(rows, ({ app }) => app as AppId)].map(([app, own]) => [app, presentCounts(own)]))

type Window = {
  readonly apps: readonly App[]
  /** Minutes since 1970: the first that is read, and the first that is judged as now. */
  readonly first: number
  readonly begin: number
  /** The counts since each of them. */
  readonly whole: CountsByApp
  readonly recent: CountsByApp
}

/** The apps whose mail failed before and does not fail now, grouped by the newest reply. */
async function readFailed(
  store: Context['store'],
  { apps, first, begin, whole, recent }: Window,
): Promise<FailedApps[]> {
  const before = [...whole].flatMap(([app, { delivered, failed }]): [AppId, Ends][] => {
    const now = recent.get(app)
    if (now === undefined) return [[app, { delivered, failed }]]
    const left = Object.entries(failed).map(([reason, count]) => [reason, count - (now.failed[reason] ?? 0)])
    return isFailing(now)
      ? []
      : [[app, { delivered: delivered - now.delivered, failed: Object.fromEntries(left) }]]
  })
  const failing = new Map(before.filter(([, ends]) => isFailing(ends)))
  const replies = await readReplies(store, failing)
  const groups = Map.groupBy(
    apps.filter(({ id }) => failing.has(id)),
    ({ id }) => replies.get(id) ?? null,
  )
  return Promise.all(
    [...groups].map(async ([reply, group]) => ({
      slugs: group.map(({ slug }) => slug),
      reply,
      minutes: await store.readActivity({ apps: group.map(({ id }) => id), from: first, to: begin, step: 1 }),
    })),
  )
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The newest reply of the apps whose mail fails. */
async function readReplies(
  store: Context['store'],
  byApp: ReadonlyMap<AppId, Ends>,
): Promise<ReadonlyMap<AppId, string>> {
  const failing = [...byApp].filter(([, counts]) => isFailing(counts)).slice(0, repliesMax)
  const replies = new Map<AppId, string>()
  for (const [app] of failing) {
    const [email] = (await store.listEmails({ app, state: 'failed', limit: 1 })).items
    const reply = email?.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text
    if (reply !== undefined) replies.set(app, reply)
  }
  return replies
}
