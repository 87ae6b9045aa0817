/** Reads the counts of the last two hours: what is judged as now, and what was wrong before. */
import type { App } from '../../domain/app/app.ts'
import { appMinutesKept, latelyMinutes, overMinutes } from '../../domain/bounds.ts'
import { isAboutRecipient } from '../../domain/delivery/blame.ts'
import type { Outage } from '../../domain/delivery/relay-state.ts'
import { kindOfReply } from '../../domain/delivery/smtp-reply.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { type ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import { iso, type NodeResource } from '../resources.ts'
import {
  type AppConditionKind,
  addCounts,
  appConditionKinds,
  appConditions,
  findNow,
  newestMax,
} from './app-conditions.ts'
import type { Situation, UsualReply } from './condition.ts'
import { type Earlier, findEarlier, type PastCondition } from './earlier.ts'
import { firstMinuteNow, stoppedSince } from './outages.ts'

/** The latest counts of the mail that the access sees, and what was wrong before. */
export async function readActivity(
  context: Context,
  { apps, nodes, outages }: Pick<Now, 'apps' | 'nodes' | 'outages'>,
) {
  const { store, access } = context
  const { begin, kept, to } = boundMinutes(store.now())
  const query = { apps: access.apps && [...access.apps], from: kept, to, step: 1 } as const
  const read = async (from: number) => countByApp(await store.readAppActivity(from, to), context)
  const [minutes, byApp, last] = await Promise.all([store.readActivity(query), read(begin), read(to - overMinutes)])
  const since = (minute: number) => minutes.filter((row) => row.minute >= minute)
  const expiredFrom = firstMinuteNow(nodes, outages, { begin, kept })
  const hasExpired = since(expiredFrom).some(({ event }) => event === 'expired')
  const expired = hasExpired ? countExpired(expiredFrom === begin ? byApp : await read(expiredFrom)) : new Map()
  const now: Now = { apps, nodes, outages, minutes, expiredFrom, byApp, last, expired }
  return {
    now: {
      lately: presentCounts(since(begin)),
      latest: presentCounts(since(to - overMinutes)),
      byApp,
      last,
      expired,
      expiredFrom,
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

/** In minutes since 1970: the last minutes, and those that are kept, up to the current one. */
function boundMinutes(nowMs: number) {
  const to = Math.floor(nowMs / minuteMs) + 1
  return { begin: to - latelyMinutes, kept: to - appMinutesKept + 1, to }
}

/** The links that expired since no relay takes mail. */
export async function readExpiredInStop(
  context: Context,
  nodes: readonly NodeResource[],
): Promise<Pick<Situation, 'expired' | 'expiredFrom'>> {
  const { to, ...bounds } = boundMinutes(context.store.now())
  const expiredFrom = firstMinuteNow(nodes, [], bounds)
  if (stoppedSince(nodes) === null) return { expired: new Map(), expiredFrom }
  const rows = await context.store.readAppActivity(expiredFrom, to)
  return { expired: countExpired(countByApp(rows, context)), expiredFrom }
}

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
  /** Outages of relays that are over. */
  readonly outages: readonly Outage[]
  /** The counts of the access in all minutes that are kept. */
  readonly minutes: Awaited<ReturnType<Store['readActivity']>>
  readonly expiredFrom: number
  readonly byApp: CountsByApp
  readonly last: CountsByApp
  readonly expired: ReadonlyMap<AppId, number>
}

async function readEarlier(context: Context, now: Now): Promise<readonly Earlier[]> {
  const { past, store } = context
  const { apps, outages, minutes, expiredFrom, last, expired } = now
  const rows = await past.get()
  const pastByApp = countByApp(rows, context)
  const hadExpired = ({ id }: App) =>
    (pastByApp.get(id)?.expired ?? 0) + (last.get(id)?.expired ?? 0) > (expired.get(id) ?? 0)
  return findEarlier({
    nowMs: store.now(),
    outages,
    minutes: minutes.filter(({ minute }) => minute < expiredFrom),
    expired: apps.filter(hadExpired).map(({ slug }) => slug),
    conditions: (
      await Promise.all(appConditionKinds.map((kind) => readPast(kind, store, { now, pastByApp, rows })))
    ).flat(),
  })
}

/** Causes of one kind that are listed. */
const pastMax = 10

type PastParts = { readonly now: Now; readonly pastByApp: CountsByApp; readonly rows: AppRows }

/** The conditions of a kind that are over: of mail by the usual reply, of requests by their app. */
async function readPast(
  kind: AppConditionKind,
  store: Context['store'],
  { now, pastByApp, rows }: PastParts,
): Promise<PastCondition[]> {
  const { appliesTo, countsEvent, state } = appConditions[kind]
  const affected = now.apps.filter((app) => {
    const counts = pastByApp.get(app.id)
    const isOnPurpose = state === null && app.status !== 'active'
    return counts !== undefined && !isOnPurpose && appliesTo(counts) && findNow(kind, app, now) === null
  })
  // Mail that was deferred has gone on since: what is deferred now has another cause.
  const replies = state === 'failed' ? await readReplies(store, state, affected) : new Map<AppId, UsualReply>()
  const groups = Map.groupBy(affected, ({ id }) => (state === null ? id : replies.get(id)?.text))
  return [...groups.values()].slice(0, pastMax).map((group) => {
    const ids = new Set(group.map(({ id }) => id))
    const own = rows.filter(({ app, event }) => ids.has(app) && countsEvent(event))
    return {
      kind,
      slugs: group.map(({ slug }) => slug),
      reply: replies.get(group[0]?.id as AppId)?.text ?? null,
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
      ? new Map<AppId, UsualReply>()
      : readReplies(
          store,
          state,
          now.apps.filter((app) => findNow(kind, app, now) !== null),
        )
  }
  return Object.fromEntries(await Promise.all(appConditionKinds.map(async (kind) => [kind, await read(kind)] as const)))
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The usual reply to the newest mail of these apps in a state. */
async function readReplies(
  store: Context['store'],
  state: 'failed' | 'deferred',
  apps: readonly App[],
): Promise<ReadonlyMap<AppId, UsualReply>> {
  const since = store.now() - latelyMinutes * minuteMs
  const usual = new Map<AppId, UsualReply>()
  for (const { id } of apps.slice(0, repliesMax)) {
    const { items } = await store.listEmails({ app: id, state, limit: newestMax })
    const replies = items.flatMap(({ trail }) => {
      const last = trail.findLast(({ reply }) => reply !== undefined)
      return last?.reply === undefined || last.at < since ? [] : [last.reply]
    })
    const [same] = [...Map.groupBy(replies, ({ text }) => kindOfReply(text)).values()].toSorted(
      (a, b) => b.length - a.length,
    )
    const text = same?.[0]?.text
    if (text === undefined) continue
    const isOfRecipients = replies.every((reply) =>
      isAboutRecipient({ stage: 'handed-over', reply, isRefused: state === 'failed' }),
    )
    usual.set(id, { text, emails: replies.length, isOfRecipients })
  }
  return usual
}
