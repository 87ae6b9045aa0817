/** The queue as operators see it: how much mail waits, by state and by app. */
import { type Static, Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { queueAgesMs } from '../../domain/bounds.ts'
import type { CountedQueue } from '../context.ts'
import { isInScope } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso, isoOrNull } from '../resources.ts'

const counts = { queued: Type.Integer(), sending: Type.Integer(), deferred: Type.Integer() }

export const QueueResource = closed({
  depth: Type.Integer(),
  max: Type.Integer({ description: 'The queue depth at which requests are refused with 503.' }),
  oldestAcceptedAt: orNull(time()),
  oldestAgeSeconds: Type.Integer(),
  nextAttemptAt: orNull(time()),
  firstExpiresAt: orNull(Type.String({ format: 'date-time', description: 'When the first link expires.' })),
  states: closed(counts),
  apps: Type.Array(
    closed({
      app: Type.String(),
      slug: orNull(Type.String({ description: 'Null for an app that has been deleted.' })),
      held: Type.Boolean({ description: 'The app is disabled, so its mail is not sent.' }),
      ...counts,
      ages: Type.Array(Type.Integer(), {
        description: `How many emails are younger than ${queueAgesMs.map((age) => `${age / 1000} s`).join(', ')}, and how many are older; each counts once.`,
      }),
    }),
  ),
  countedAt: Type.String({
    format: 'date-time',
    description:
      'When states and apps were counted; the count of a deep queue is cached for up to a minute. For the whole service, the depth and the oldest email are always current.',
  }),
})
export type QueueResource = Static<typeof QueueResource>

/** @param all at least the apps that the access may see */
export function presentQueue(
  { queueMax, access, store }: Pick<Context, 'queueMax' | 'access' | 'store'>,
  counted: CountedQueue,
  all: readonly App[],
): QueueResource {
  const apps = countByApp(
    { ...counted, counts: counted.counts.filter(({ app }) => isInScope(access, app)) },
    new Map(all.map((app) => [app.id, app])),
  )
  const total = (name: keyof typeof counts) => apps.reduce((sum, app) => sum + app[name], 0)
  const states = { queued: total('queued'), sending: total('sending'), deferred: total('deferred') }
  // The oldest email and the next attempt are those of the whole service, which an app's team does not see.
  const seen = access.apps === null ? counted : { oldestAcceptedAt: null, nextAttemptAt: null, firstExpiresAt: null }
  const oldest = seen.oldestAcceptedAt
  return {
    depth: access.apps === null ? counted.depth : states.queued + states.sending + states.deferred,
    max: queueMax,
    oldestAcceptedAt: oldest === null ? null : iso(oldest),
    oldestAgeSeconds: oldest === null ? 0 : Math.max(0, Math.floor((store.now() - oldest) / 1000)),
    nextAttemptAt: isoOrNull(seen.nextAttemptAt),
    firstExpiresAt: isoOrNull(seen.firstExpiresAt),
    states,
    apps,
    countedAt: iso(counted.countedAt),
  }
}

function countByApp(counted: CountedQueue, apps: ReadonlyMap<App['id'], App>): QueueResource['apps'] {
  const rows = new Map<App['id'], QueueResource['apps'][number]>()
  for (const { app, state, count } of counted.counts) {
    const known = apps.get(app)
    const fresh = { app, slug: known?.slug ?? null, held: known !== undefined && known.status !== 'active' }
    const ages = counted.ages.find((entry) => entry.app === app)?.counts ?? []
    const row = rows.get(app) ?? { ...fresh, queued: 0, sending: 0, deferred: 0, ages: [...ages] }
    rows.set(app, { ...row, [state]: count })
  }
  return [...rows.values()]
}
