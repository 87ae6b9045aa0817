/** Shows what needs attention now, and how the service runs. */

import { type Static, Type } from 'typebox'
import { sumCounts } from '../../domain/counts.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import { ActivityCounts, presentCounts } from '../activity.ts'
import { isInScope } from '../operation/access.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { NodeResource, presentNode, presentUsage, type UsageResource } from '../resources.ts'
import { attentionKinds, findAttention } from './attention.ts'
import { presentQueue, QueueResource } from './show-queue.ts'

const StatusResource = closed({
  ok: Type.Boolean({ description: 'Nothing needs attention.' }),
  attention: Type.Array(
    closed({
      kind: Type.Enum([...attentionKinds]),
      message: Type.String({ description: 'The condition, and what to do.' }),
      app: orNull(Type.String({ description: 'The slug of the app that it concerns.' })),
    }),
  ),
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
    description: 'The processes of the service; none for a token for some apps.',
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
    'Shows what needs attention now, the counts of today (UTC) and of the last hour, the processes with their relays, and the queue.',
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
    const service = access.apps === null ? await readService(context) : null
    const nodes = service?.nodes ?? []
    const attention = findAttention({
      apps,
      usage,
      expiring,
      queue,
      findings: service?.findings ?? [],
      nodes,
      answers: service?.lastMinutes ?? null,
      expiredLately: service?.lastHour.expired ?? null,
      late: counted.late,
      nowMs: now,
    })
    const today = countToday(apps.map(({ id }) => presentUsage({ day: '', counts: usage.get(id) ?? {} })))
    return done({
      ok: attention.length === 0,
      attention,
      today,
      lastHour: service?.lastHour ?? null,
      apps: apps.length,
      nodes,
      queue,
    })
  },
})

const hourMinutes = 60
/** The answers to requests that may need attention. */
const answersMinutes = 10

/** The parts that only an access to the whole service sees. */
async function readService({ store, findings }: Context) {
  const now = store.now()
  const to = Math.floor(now / minuteMs) + 1
  const rows = await store.readActivity({ apps: null, from: to - hourMinutes, to, step: 1 })
  return {
    findings: await findings.get(),
    nodes: (await store.listNodes()).map((node) => presentNode(node, now)),
    lastHour: presentCounts(rows),
    lastMinutes: presentCounts(rows.filter(({ minute }) => minute >= to - answersMinutes)),
  }
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
