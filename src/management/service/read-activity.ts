/** Reads the counts of the last two hours: what is judged as now, and what was wrong before. */
import type { App } from '../../domain/app/app.ts'
import { appMinutesKept, latelyMinutes, overMinutes } from '../../domain/bounds.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { type ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import { iso, type NodeResource } from '../resources.ts'
import { type AppConditionKind, addCounts, appConditionKinds, appConditions, hasNow } from './app-conditions.ts'
import type { Situation } from './condition.ts'
import { type Earlier, findEarlier, firstMinuteAfter, outageEnd, type PastCondition } from './earlier.ts'

/** The latest counts of the mail that the access sees, and what was wrong before. */
export async function readActivity(context: Context, nodes: readonly NodeResource[], apps: readonly App[]) {
  const { store, access } = context
  const to = Math.floor(store.now() / minuteMs) + 1
  const begin = to - latelyMinutes
  const query = { apps: access.apps && [...access.apps], from: to - appMinutesKept + 1, to, step: 1 } as const
  const read = async (from: number) => countByApp(await store.readAppActivity(from, to), context)
  const [minutes, byApp, last] = await Promise.all([store.readActivity(query), read(begin), read(to - overMinutes)])
  const since = (minute: number) => minutes.filter((row) => row.minute >= minute)
  const afterOutage = Math.max(begin, firstMinuteAfter(outageEnd(nodes)))
  const hasExpired = since(afterOutage).some(({ event }) => event === 'expired')
  const expired = hasExpired ? countExpired(afterOutage === begin ? byApp : await read(afterOutage)) : new Map()
  const now: Now = { apps, nodes, minutes, afterOutage, byApp, last, expired }
  return {
    now: {
      lately: presentCounts(since(begin)),
      byApp,
      last,
      expired,
      replies: await readRepliesNow(store, now),
    },
    lastHour: presentCounts(since(to - hourMinutes)),
    earlier: (await readEarlier(context, now)).map(({ apps: slugs, from, until, ...what }) => ({
      ...what,
      apps: [...slugs],
      from: iso(from),
      until: iso(until),
    })),
  }
}

const hourMinutes = 60

type AppRows = Awaited<ReturnType<Store['readAppActivity']>>
type CountsByApp = ReadonlyMap<AppId, ActivityCounts>

/** For the apps that an access sees. */
const countByApp = (rows: AppRows, { access }: Pick<Context, 'access'>): CountsByApp => {
  const groups = Map.groupBy(
    rows.filter(({ app }) => isInScope(access, app)),
    ({ app }) => app,
  )
  return new Map([...groups].map(([app, own]) => [app, presentCounts(own)]))
}

const countExpired = (counts: CountsByApp): Map<AppId, number> =>
  new Map([...counts].flatMap(([app, { expired }]) => (expired === 0 ? [] : [[app, expired] as const])))

type Now = {
  readonly apps: readonly App[]
  readonly nodes: readonly NodeResource[]
  /** The counts of the access in all minutes that are kept. */
  readonly minutes: Awaited<ReturnType<Store['readActivity']>>
  /** The first minute whose expired links are judged as now. */
  readonly afterOutage: number
  readonly byApp: CountsByApp
  readonly last: CountsByApp
  readonly expired: ReadonlyMap<AppId, number>
}

async function readEarlier(context: Context, now: Now): Promise<readonly Earlier[]> {
  const { access, past, store } = context
  const { apps, nodes, minutes, afterOutage, last, expired } = now
  const rows = await past.get()
  const pastByApp = countByApp(rows, context)
  const hadExpired = ({ id }: App) =>
    (pastByApp.get(id)?.expired ?? 0) + (last.get(id)?.expired ?? 0) > (expired.get(id) ?? 0)
  return findEarlier({
    nowMs: store.now(),
    // Outages name relays.
    nodes: access.apps === null ? nodes : [],
    minutes: minutes.filter(({ minute }) => minute < afterOutage),
    expired: apps.filter(hadExpired).map(({ slug }) => slug),
    conditions: (
      await Promise.all(appConditionKinds.map((kind) => readPast(kind, store, { now, pastByApp, rows })))
    ).flat(),
  })
}

/** Causes of one kind that are listed. */
const pastMax = 10

type PastParts = { readonly now: Now; readonly pastByApp: CountsByApp; readonly rows: AppRows }

/** The conditions of a kind that are over: of mail by the newest reply, of requests by their app. */
async function readPast(
  kind: AppConditionKind,
  store: Context['store'],
  { now, pastByApp, rows }: PastParts,
): Promise<PastCondition[]> {
  const { appliesTo, countsEvent, state } = appConditions[kind]
  const affected = now.apps.filter((app) => {
    const counts = pastByApp.get(app.id)
    const isOnPurpose = state === null && app.status !== 'active'
    return counts !== undefined && !isOnPurpose && appliesTo(counts) && !hasNow(kind, app, now)
  })
  // Mail that was deferred has gone on since: what is deferred now has another cause.
  const replies = state === 'failed' ? await readReplies(store, state, affected) : new Map<AppId, string>()
  const groups = Map.groupBy(affected, ({ id }) => (state === null ? id : (replies.get(id) ?? null)))
  return [...groups.values()].slice(0, pastMax).map((group) => {
    const ids = new Set(group.map(({ id }) => id))
    const own = rows.filter(({ app, event }) => ids.has(app) && countsEvent(event))
    return {
      kind,
      slugs: group.map(({ slug }) => slug),
      reply: replies.get(group[0]?.id as AppId) ?? null,
      counts: addCounts(group.flatMap(({ id }) => pastByApp.get(id) ?? [])),
      from: Math.min(...own.map(({ first }) => first)) * minuteMs,
      until: Math.max(...own.map((row) => row.last + 1)) * minuteMs,
    }
  })
}

/** The replies to mail of the apps that have such a condition now. */
async function readRepliesNow(store: Context['store'], now: Now): Promise<Situation['replies']> {
  const read = async (kind: AppConditionKind) => {
    const { state } = appConditions[kind]
    return state === null
      ? new Map<AppId, string>()
      : readReplies(
          store,
          state,
          now.apps.filter((app) => hasNow(kind, app, now)),
        )
  }
  return Object.fromEntries(await Promise.all(appConditionKinds.map(async (kind) => [kind, await read(kind)] as const)))
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The newest reply to mail of these apps in a state. */
async function readReplies(
  store: Context['store'],
  state: 'failed' | 'deferred',
  apps: readonly App[],
): Promise<ReadonlyMap<AppId, string>> {
  const replies = new Map<AppId, string>()
  for (const { id } of apps.slice(0, repliesMax)) {
    const [email] = (await store.listEmails({ app: id, state, limit: 1 })).items
    const reply = email?.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text
    if (reply !== undefined) replies.set(id, reply)
  }
  return replies
}
