/** Reads the counts of the last two hours: what is judged as now, and what was wrong before. */
import type { App } from '../../domain/app/app.ts'
import { appMinutesKept, latelyMinutes } from '../../domain/bounds.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { type ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import type { AppRows, PastCounts } from '../past-counts.ts'
import { iso, type NodeResource } from '../resources.ts'
import { isFailing } from './condition.ts'
import { type Earlier, type FailedApps, findEarlier, findOutageEnd } from './earlier.ts'

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
  const now: Now = { apps, nodes, minutes, afterOutage, byApp, expired }
  return {
    now: { lately: presentCounts(since(begin)), byApp, expired, replies: await readReplies(store, byApp) },
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
  readonly expired: ReadonlyMap<AppId, number>
}

async function readEarlier(
  context: Context,
  { apps, nodes, minutes, afterOutage, byApp, expired }: Now,
): Promise<readonly Earlier[]> {
  const { access, past, store } = context
  const before = minutes.filter(({ minute }) => minute < afterOutage)
  // Mostly nothing was wrong, and the counts of the apps need not be read.
  const wasWrong = before.some(({ event }) => event === 'expired' || event.startsWith('failed:'))
  const counts = wasWrong ? await past.get() : { from: 0, to: 0, rows: [] }
  const pastByApp = countByApp(counts.rows, context)
  const hadExpired = ({ id }: App) =>
    (pastByApp.get(id)?.expired ?? 0) + (byApp.get(id)?.expired ?? 0) > (expired.get(id) ?? 0)
  const failed = [...pastByApp].filter(([app, own]) => {
    const now = byApp.get(app)
    return isFailing(own) && (now === undefined || !isFailing(now))
  })
  return findEarlier({
    nowMs: store.now(),
    // Outages name relays.
    nodes: access.apps === null ? nodes : [],
    minutes: before,
    expired: apps.filter(hadExpired).map(({ slug }) => slug),
    failed: await readFailed(store, apps, { failing: new Map(failed), counts }),
  })
}

/** The apps whose mail failed before, grouped by the newest reply. */
async function readFailed(
  store: Context['store'],
  apps: readonly App[],
  { failing, counts: { from, to } }: { readonly failing: CountsByApp; readonly counts: PastCounts },
): Promise<FailedApps[]> {
  const replies = await readReplies(store, failing)
  const groups = Map.groupBy(
    apps.filter(({ id }) => failing.has(id)),
    ({ id }) => replies.get(id) ?? null,
  )
  return Promise.all(
    [...groups].map(async ([reply, group]) => ({
      slugs: group.map(({ slug }) => slug),
      reply,
      minutes: await store.readActivity({ apps: group.map(({ id }) => id), from, to, step: 1 }),
    })),
  )
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The newest reply of the apps whose mail fails. */
async function readReplies(store: Context['store'], byApp: CountsByApp): Promise<ReadonlyMap<AppId, string>> {
  const failing = [...byApp].filter(([, counts]) => isFailing(counts)).slice(0, repliesMax)
  const replies = new Map<AppId, string>()
  for (const [app] of failing) {
    const [email] = (await store.listEmails({ app, state: 'failed', limit: 1 })).items
    const reply = email?.trail.findLast((attempt) => attempt.reply !== undefined)?.reply?.text
    if (reply !== undefined) replies.set(app, reply)
  }
  return replies
}
