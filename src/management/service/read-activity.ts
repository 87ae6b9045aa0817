/** Reads the counts of the last two hours: what is judged as now, and what was wrong before. */
import type { App } from '../../domain/app/app.ts'
import { appMinutesKept, latelyMinutes, overMinutes } from '../../domain/bounds.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { type ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import type { AppRows, PastCounts } from '../past-counts.ts'
import { iso, type NodeResource } from '../resources.ts'
import type { Replies } from './condition.ts'
import { type Earlier, findEarlier, findOutageEnd, type PastTrouble } from './earlier.ts'
import { goesOn, type TroubleKind, troubleKinds, troubles } from './trouble.ts'

/** The latest counts of the mail that the access sees, and what was wrong before. */
export async function readActivity(context: Context, nodes: readonly NodeResource[], apps: readonly App[]) {
  const { store, access } = context
  const to = Math.floor(store.now() / minuteMs) + 1
  const begin = to - latelyMinutes
  const query = { apps: access.apps && [...access.apps], from: to - appMinutesKept + 1, to, step: 1 } as const
  const minutes = await store.readActivity(query)
  const since = (minute: number) => minutes.filter((row) => row.minute >= minute)
  const afterOutage = Math.max(begin, Math.floor(findOutageEnd(nodes) / minuteMs) + 1)
  const read = async (from: number) => countByApp(await store.readAppActivity(from, to), context)
  const byApp = await read(begin)
  const hasExpired = since(afterOutage).some(({ event }) => event === 'expired')
  const expired = hasExpired
    ? countExpired(afterOutage === begin ? byApp : await read(afterOutage))
    : new Map()
  const last = await read(to - overMinutes)
  const now: Now = { apps, nodes, minutes, afterOutage, byApp, last, expired }
  return {
    now: {
      lately: presentCounts(since(begin)),
      byApp,
      last,
      expired,
      replies: await readReplies(store, now),
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

type CountsByApp = ReadonlyMap<AppId, ActivityCounts>

/** For the apps that an access sees. */
const countByApp = (rows: AppRows, { access }: Pick<Context, 'access'>): CountsByApp => {
  const seen = rows.filter(({ app }) => app !== null && isInScope(access, app))
  const groups = Map.groupBy(seen, ({ app }) => app as AppId)
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

/** Whether a trouble of an app is judged as now. */
const isNow = (kind: TroubleKind, app: AppId, { byApp, last }: Pick<Now, 'byApp' | 'last'>): boolean => {
  const counts = byApp.get(app)
  return counts !== undefined && goesOn(kind, counts, last.get(app))
}

async function readEarlier(context: Context, now: Now): Promise<readonly Earlier[]> {
  const { access, past, store } = context
  const { apps, nodes, minutes, afterOutage, last, expired } = now
  const before = minutes.filter(({ minute }) => minute < afterOutage)
  // Mostly nothing was wrong, and the counts of the apps need not be read.
  const wasWrong = minutes.some(
    ({ event }) => event === 'expired' || troubleKinds.some((kind) => troubles[kind].isOf(event)),
  )
  const counts = wasWrong ? await past.get() : { from: 0, to: 0, rows: [] }
  const pastByApp = countByApp(counts.rows, context)
  const hadExpired = ({ id }: App) =>
    (pastByApp.get(id)?.expired ?? 0) + (last.get(id)?.expired ?? 0) > (expired.get(id) ?? 0)
  return findEarlier({
    nowMs: store.now(),
    // Outages name relays.
    nodes: access.apps === null ? nodes : [],
    minutes: before,
    expired: apps.filter(hadExpired).map(({ slug }) => slug),
    troubles: await readPast(store, { now, pastByApp, counts }),
  })
}

/** Causes of one kind that are listed. */
const pastMax = 10

type PastParts = { readonly now: Now; readonly pastByApp: CountsByApp; readonly counts: PastCounts }

/** The troubles that are over: of mail, grouped by the newest reply; of requests, by their app. */
async function readPast(
  store: Context['store'],
  { now, pastByApp, counts: { from, to } }: PastParts,
): Promise<PastTrouble[]> {
  const found: PastTrouble[] = []
  for (const kind of troubleKinds) {
    const troubled = now.apps.filter(({ id }) => {
      const counts = pastByApp.get(id)
      return counts !== undefined && troubles[kind].isIn(counts) && !isNow(kind, id, now)
    })
    const replies = await readRepliesTo(kind, store, troubled)
    const groups = Map.groupBy(troubled, ({ id }) =>
      kind === 'requests_refused' ? id : (replies.get(id) ?? null),
    )
    for (const group of [...groups.values()].slice(0, pastMax))
      found.push({
        kind,
        slugs: group.map(({ slug }) => slug),
        reply: replies.get(group[0]?.id as AppId) ?? null,
        minutes: await store.readActivity({ apps: group.map(({ id }) => id), from, to, step: 1 }),
      })
  }
  return found
}

async function readReplies(store: Context['store'], now: Now): Promise<Replies> {
  const read = (kind: 'mail_failed' | 'mail_deferred') =>
    readRepliesTo(
      kind,
      store,
      now.apps.filter(({ id }) => isNow(kind, id, now)),
    )
  return { mail_failed: await read('mail_failed'), mail_deferred: await read('mail_deferred') }
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The newest reply to mail of these apps that failed or was deferred. */
async function readRepliesTo(
  kind: TroubleKind,
  store: Context['store'],
  apps: readonly App[],
): Promise<ReadonlyMap<AppId, string>> {
  const replies = new Map<AppId, string>()
  if (kind === 'requests_refused') return replies
  const state = kind === 'mail_failed' ? 'failed' : 'deferred'
  for (const { id } of apps.slice(0, repliesMax)) {
    const [email] = (await store.listEmails({ app: id, state, limit: 1 })).items
    const reply = email?.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text
    if (reply !== undefined) replies.set(id, reply)
  }
  return replies
}
