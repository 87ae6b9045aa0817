/**
 * For operators and their monitoring: `/livez` (the process answers), `/readyz` (it takes requests:
 * the store can queue an email, and the process is neither starting nor stopping), `/metrics` (Prometheus),
 * `/link-domain?domain=…` (200 if an app has this link domain: a proxy asks before it gets a certificate).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { enqueueDeadlineMs } from '../../domain/bounds.ts'
import { describeDuration } from '../../domain/duration.ts'
import { SharedRead } from '../../domain/remembered.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Queueing } from '../../observe/queueing.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { type ListenerDeps, newListener, sendError, sendJson } from '../http/listener.ts'

export type OpsDeps = ListenerDeps & {
  readonly metrics: Metrics
  readonly store: Pick<Store, 'probeWrite'>
  readonly isReady: () => boolean
  readonly queueing: Pick<Queueing, 'findFault'>
  readonly linkDomains: SharedRead<ReadonlySet<string>>
}

/**
 * For so long a probe that succeeded answers for those after it, so that no number of them burdens the store.
 */
const provenMs = 1000

export function newOpsListener(deps: OpsDeps): FastifyInstance {
  const listener = newListener({ emit: deps.emit, isProxy: deps.isProxy })
  const probe = new SharedRead(
    () => probeInTime(deps.store),
    () => provenMs,
  )
  listener.get('/livez', (_request, reply) => sendJson(reply, 200, '{"ok":true}'))
  listener.get('/readyz', async (_request, reply) => {
    if (!deps.isReady())
      return sendError(reply, 503, { code: 'not_ready', message: 'This process is starting or stopping.' })
    const fault = deps.queueing.findFault()?.message ?? (await findFault(probe))
    if (fault === null) return sendJson(reply, 200, '{"ok":true}')
    const message = `No email can be queued: ${fault}.`
    return sendError(reply, 503, { code: 'store_unavailable', message })
  })
  listener.get<{ Querystring: { domain?: unknown } }>('/link-domain', async ({ query }, reply) => {
    const known = await deps.linkDomains.get().catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return null
      throw error
    })
    if (known === null)
      return sendError(reply, 503, { code: 'store_unavailable', message: 'The database does not answer.' })
    if (known.has(String(query.domain))) return sendJson(reply, 200, '{"ok":true}')
    return sendError(reply, 404, { code: 'not_found', message: 'No active app has this link domain.' })
  })
  listener.get('/metrics', async (_request, reply) => {
    reply.header('content-type', deps.metrics.registry.contentType)
    return deps.metrics.read()
  })
  return listener
}

async function findFault(probe: SharedRead<void>): Promise<string | null> {
  try {
    await probe.get()
    return null
  } catch (error) {
    if (error instanceof StoreUnavailable) return error.message
    throw error
  }
}

async function probeInTime(store: OpsDeps['store']): Promise<void> {
  const answer = store.probeWrite().then(() => true)
  if (await Promise.race([answer, sleep(enqueueDeadlineMs, false, { ref: false })])) return
  throw new StoreUnavailable(`the database has not answered for ${describeDuration(enqueueDeadlineMs)}`)
}
