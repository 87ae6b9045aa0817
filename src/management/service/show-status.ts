/** Shows what needs attention now, and how the service runs. */
import { type Static, Type } from 'typebox'
import { usageEvents } from '../../domain/delivery/states.ts'
import { isInScope } from '../access.ts'
import { type Context, operation } from '../operation.ts'
import { done } from '../result.ts'
import { closed } from '../schema.ts'
import { attentionKinds, findAttention } from './attention.ts'
import { QueueResource, readQueue } from './show-queue.ts'

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

const keyWarningMs = 7 * 86_400_000

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
    const queue = await readQueue(context, apps)
    const { late } = await context.queue.get()
    const found = access.apps === null ? await findings.get() : []
    const attention = findAttention({ apps, usage, expiring, queue, findings: found, late, nowMs: now })
    const today = countToday(usage, apps)
    return done({ ok: attention.length === 0, attention, today, apps: apps.length, queue })
  },
})

type Usage = Awaited<ReturnType<Context['store']['usageToday']>>

function countToday(
  usage: Usage,
  apps: readonly { id: Parameters<Usage['get']>[0] }[],
): StatusResource['today'] {
  const today = { accepted: 0, delivered: 0, failed: 0, expired: 0, refused: 0 }
  for (const { id } of apps) {
    for (const [event, count] of Object.entries(usage.get(id) ?? {})) {
      if (event in today && event !== 'refused') today[event as keyof typeof today] += count
      else if (!usageEvents.some((name) => name === event)) today.refused += count
    }
  }
  return today
}
