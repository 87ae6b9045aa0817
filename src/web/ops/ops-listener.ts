/**
 * For whoever runs Postern: `/livez` (the process answers), `/readyz` (it takes requests: the store
 * answers and it is not stopping), `/metrics`.
 */
import type { FastifyInstance } from 'fastify'
import type { Metrics, QueueGauge } from '../../observe/metrics.ts'
import { newListener, sendError, sendJson } from '../http/listener.ts'

export type OpsDeps = {
  readonly metrics: Metrics
  readonly queueGauge: QueueGauge
  readonly isReady: () => boolean
  readonly onBug: (error: Error) => void
}

export function newOpsListener(deps: OpsDeps): FastifyInstance {
  const app = newListener({ onBug: deps.onBug })
  app.get('/livez', (_request, reply) => sendJson(reply, 200, '{"ok":true}'))
  app.get('/readyz', async (_request, reply) => {
    if (!deps.isReady())
      return sendError(reply, 503, { code: 'stopping', message: 'This process is stopping.' })
    try {
      await deps.queueGauge()
      return sendJson(reply, 200, '{"ok":true}')
    } catch {
      return sendError(reply, 503, { code: 'store_unavailable', message: 'The store does not answer.' })
    }
  })
  app.get('/metrics', async (_request, reply) => {
    reply.header('content-type', deps.metrics.registry.contentType)
    return deps.metrics.registry.metrics()
  })
  return app
}
