/** Shows how much mail waits, by state and by app, and why nothing is sent. */
import { Type } from 'typebox'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { presentNode } from '../resources.ts'
import { findStops } from './attention-nodes.ts'
import { AttentionResource } from './condition.ts'
import { presentQueue, QueueResource } from './queue.ts'
import { readExpiredInStop } from './read-activity.ts'

const StoppedQueue = closed({
  ...QueueResource.properties,
  stops: Type.Array(AttentionResource, { description: 'Why nothing is sent now; empty if mail is sent.' }),
})

export const showQueue = operation({
  method: 'GET',
  path: '/v1/queue',
  role: 'reader',
  summary:
    'Counts the queued mail, and says why nothing is sent. A token that is limited to some apps sees only their mail.',
  answer: StoppedQueue,
  async run(context) {
    const { access, store } = context
    const [counted, allApps, allNodes, findings] = await Promise.all([
      context.queue.get(),
      store.listApps(),
      store.listNodes(),
      context.findings.get(),
    ])
    const nowMs = store.now()
    const apps = allApps.filter(({ id }) => isInScope(access, id))
    const queue = presentQueue(context, counted, apps)
    const nodes = allNodes.map((node) => presentNode(node, nowMs))
    const expired = await readExpiredInStop(context, nodes)
    const stops = findStops({ apps, findings, queue, nodes, nowMs, seesAll: access.apps === null, ...expired })
    return done({ ...queue, stops })
  },
})
