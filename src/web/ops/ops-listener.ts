/**
 * For operators and their monitoring: `/livez` (the process answers), `/readyz` (it takes requests:
 * the store answers, and the process is neither starting nor stopping), `/metrics` (Prometheus).
 */
import type { FastifyInstance } from 'fastify'
import type { Metrics } from '../../observe/metrics.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { type ListenerDeps, newListener, sendError, sendJson } from '../http/listener.ts'

export type OpsDeps = ListenerDeps & {
  readonly metrics: Metrics
  readonly store: Pick<Store, 'readQueueGauge'>
  readonly isReady: () => boolean
}

export function newOpsListener(deps: OpsDeps): FastifyInstance {
  const listener = newListener({ emit: deps.emit, isProxy: deps.isProxy })
  listener.get('/livez', (_request, reply) => sendJson(reply, 200, '{"ok":true}'))
  listener.get('/readyz', async (_request, reply) => {
    if (!deps.isReady())
      return sendError(reply, 503, { code: 'not_ready', message: 'This process is starting or stopping.' })
    try {
      await deps.store.readQueueGauge()
      return sendJson(reply, 200, '{"ok":true}')
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return sendError(reply, 503, { code: 'store_unavailable', message: 'The database does not answer.' })
    }
  })
  listener.get('/metrics', async (_request, reply) => {
    reply.header('content-type', deps.metrics.registry.contentType)
    return deps.metrics.registry.metrics()
  })
  return listener
}
