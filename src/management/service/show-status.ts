/** Shows what needs attention now, and how the service runs. */
import { type Static, Type } from 'typebox'
import { dayMs } from '../../store/shared/bounds.ts'
import { isInScope } from '../access.ts'
import { operation } from '../operation.ts'
import { presentUsage, type UsageResource } from '../resources.ts'
import { done } from '../result.ts'
import { closed } from '../schema.ts'
import { attentionKinds, findAttention } from './attention.ts'
import { presentQueue, QueueResource } from './show-queue.ts'

const StatusResource = closed({
  ok: Type.Boolean({ description: 'Nothing needs attention.' }),
  attention: Type.Array(
    closed({
      kind: Type.Enum([...attentionKinds]),
      message: Type.String({ description: 'The condition, and what to do.' }),
    }),
  ),
  today: closed({
    accepted: Type.Integer(),
    delivered: Type.Integer(),
    failed: Type.Integer(),
    expired: Type.Integer(),
    refused: Type.Integer(),
  }),
  apps: Type.Integer(),
  queue: QueueResource,
})
export type StatusResource = Static<typeof StatusResource>

const keyWarningMs = 7 * dayMs

export const showStatus = operation({
  method: 'GET',
  path: '/v1/status',
  role: 'reader',
  target: 'none',
  summary: 'Shows what needs attention now, the counts of today (UTC) and the queue.',
  answer: StatusResource,
  async run(context) {
    const { store, access, findings } = context
    const now = store.now()
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    const usage = await store.usageToday()
    const expiring = (await store.listExpiringKeys(now + keyWarningMs)).filter(({ app }) =>
      isInScope(access, app),
    )
    const counted = await context.queue.get()
    const queue = presentQueue(context, counted, apps)
    const found = access.apps === null ? await findings.get() : []
    const attention = findAttention({
      apps,
      usage,
      expiring,
      queue,
      findings: found,
      late: counted.late,
      nowMs: now,
    })
    const today = countToday(apps.map(({ id }) => presentUsage({ day: '', counts: usage.get(id) ?? {} })))
    return done({ ok: attention.length === 0, attention, today, apps: apps.length, queue })
  },
})

function countToday(apps: readonly UsageResource[]): StatusResource['today'] {
  const sum = (pick: (usage: UsageResource) => number) => apps.reduce((all, usage) => all + pick(usage), 0)
  return {
    accepted: sum((usage) => usage.accepted),
    delivered: sum((usage) => usage.delivered),
    failed: sum((usage) => usage.failed),
    expired: sum((usage) => usage.expired),
    refused: sum(({ refused }) => Object.values(refused).reduce((all, count) => all + count, 0)),
  }
}
