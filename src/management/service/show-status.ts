/** Shows what needs attention now, and how the service runs. */

import { type Static, Type } from 'typebox'
import { appMinutesKept } from '../../domain/bounds.ts'
import { sumCounts } from '../../domain/counts.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import { ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso, NodeResource, presentNode, presentUsage, type UsageResource } from '../resources.ts'
import { findAttention } from './attention.ts'
import { attentionKinds, isFailing, latelyMinutes } from './condition.ts'
import { findEarlier, findOutageEnd } from './earlier.ts'
import { presentQueue, QueueResource } from './show-queue.ts'

const kind = () => Type.Enum([...attentionKinds])
const StatusResource = closed({
  ok: Type.Boolean({ description: 'True if nothing needs attention.' }),
  attention: Type.Array(
    closed({
      kind: kind(),
      message: Type.String(),
      apps: Type.Array(Type.String(), { description: 'The slugs of the apps concerned.' }),
      urgent: Type.Boolean({ description: 'True if people cannot sign in, or soon cannot.' }),
    }),
    { description: 'Current conditions, the most urgent first.' },
  ),
  earlier: Type.Array(closed({ kind: kind(), message: Type.String(), from: time(), until: time() }), {
    description: `Conditions of the last ${appMinutesKept / 60} hours that are over, newest first.`,
  }),
  today: closed({
    accepted: Type.Integer(),
    delivered: Type.Integer(),
    failed: Type.Integer(),
    expired: Type.Integer(),
    refused: Type.Integer(),
  }),
  lastHour: orNull(ActivityCounts),
  apps: Type.Integer(),
  nodes: Type.Array(NodeResource, {
    description: 'The processes of the service; empty for a token that is limited to some apps.',
  }),
  queue: QueueResource,
})
export type StatusResource = Static<typeof StatusResource>

const keyWarningMs = 7 * dayMs

export const showStatus = operation({
  method: 'GET',
  path: '/v1/status',
  role: 'reader',
  target: 'none',
  summary:
    'Shows what needs attention now, the counts of today (UTC) and the last hour, the processes with their relays, and the queue.',
  answer: StatusResource,
  async run(context) {
    const { store, access } = context
    const now = store.now()
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    const usage = await store.usageToday()
    const expiring = (await store.listExpiringKeys(now + keyWarningMs)).filter(({ app }) =>
      isInScope(access, app),
    )
    const counted = await context.queue.get()
    const queue = presentQueue(context, counted, apps)
    const seesAll = access.apps === null
    const nodes = (await store.listNodes()).map((node) => presentNode(node, now))
    const activity = await readActivity(context, nodes)
    const attention = findAttention({
      ...{ seesAll, apps, usage, expiring, queue, nodes, ...activity.now },
      findings: seesAll ? await context.findings.get() : [],
      late: counted.late,
      nowMs: now,
    })
    return done({
      ok: attention.length === 0,
      attention,
      earlier: activity.earlier,
      today: countToday(apps.map(({ id }) => presentUsage({ day: '', counts: usage.get(id) ?? {} }))),
      lastHour: seesAll ? activity.lastHour : null,
      apps: apps.length,
      nodes: seesAll ? nodes : [],
      queue,
    })
  },
})

const hourMinutes = 60

/** The latest counts of the mail that the access sees. */
async function readActivity({ store, access }: Context, nodes: readonly NodeResource[]) {
  const nowMs = store.now()
  const to = Math.floor(nowMs / minuteMs) + 1
  const begin = to - latelyMinutes
  const minutes = await store.readActivity({
    apps: access.apps && [...access.apps],
    from: to - appMinutesKept + 1,
    to,
    step: 1,
  })
  const since = (minute: number) => minutes.filter((row) => row.minute >= minute)
  const afterOutage = Math.max(begin, Math.floor(findOutageEnd(nodes) / minuteMs) + 1)
  const countsSince = async (minute: number) =>
    (await store.readAppActivity(minute)).filter(({ app }) => app !== null && isInScope(access, app))
  const recent = await countsSince(begin)
  const expired = since(afterOutage).some(({ event }) => event === 'expired')
    ? (afterOutage === begin ? recent : await countsSince(afterOutage)).filter(
        ({ event }) => event === 'expired',
      )
    : []
  const byApp = new Map(
    [...Map.groupBy(recent, ({ app }) => app as AppId)].map(([app, rows]) => [app, presentCounts(rows)]),
  )
  return {
    now: {
      lately: presentCounts(since(begin)),
      byApp,
      expired: new Map(expired.map(({ app, count }) => [app as AppId, count])),
      replies: await readReplies(store, byApp),
    },
    lastHour: presentCounts(since(to - hourMinutes)),
    // Outages name relays.
    earlier: findEarlier(access.apps === null ? nodes : [], minutes, {
      nowMs,
      expiredFrom: afterOutage,
      failedFrom: begin,
    }).map(({ from, until, ...what }) => ({ ...what, from: iso(from), until: iso(until) })),
  }
}

/** Apps whose replies are read for one status. */
const repliesMax = 5

/** The newest reply of the apps whose mail fails. */
async function readReplies(
  store: Context['store'],
  byApp: ReadonlyMap<AppId, ActivityCounts>,
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

function countToday(apps: readonly UsageResource[]): StatusResource['today'] {
  const sum = (pick: (usage: UsageResource) => number) => apps.reduce((all, usage) => all + pick(usage), 0)
  return {
    accepted: sum((usage) => usage.accepted),
    delivered: sum((usage) => usage.delivered),
    failed: sum((usage) => usage.failed),
    expired: sum((usage) => usage.expired),
    refused: sum(({ refused }) => sumCounts(refused)),
  }
}
