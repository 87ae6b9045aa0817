/**
 * The reports listener: mail providers post what became of emails to `/reports/{provider}`. Every call
 * proves itself; any wrong proof gets one answer. Providers repeat a call until it is answered with 200.
 */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { providerCallMax } from '../../domain/bounds.ts'
import { nestedDeeper, parseJson } from '../../domain/request/email-request.ts'
import type { SignedCall } from '../../domain/signatures.ts'
import { recordEvents } from '../../reports/record-events.ts'
import type { ReportDeps } from '../../reports/record-report.ts'
import { type EventKey, provesBody, provesCall } from '../../services/event-keys.ts'
import { type Ask, TryAgain } from '../../services/event-proof.ts'
import { toFields } from '../../services/json-fields.ts'
import { type EventService, findEventService } from '../../services/services.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { type ListenerDeps, newListener, sendError, sendJson } from '../http/listener.ts'
import { newAsk } from './ask-service.ts'

export type ReportsDeps = ReportDeps &
  ListenerDeps & {
    readonly store: ReportDeps['store'] & Pick<Store, 'now'>
    readonly keys: readonly EventKey[]
    readonly isStopping: () => boolean
    /** `newAsk()` unless given. */
    readonly ask?: Ask
  }

type AskingDeps = ReportsDeps & { readonly ask: Ask }
type ReportsRequest = FastifyRequest<{ Params: { readonly service: string } }>

/** Levels of objects and arrays in a body. */
const nestingMax = 20
const retryAfterSeconds = '60'

export function newReportsListener({ ask = newAsk(), ...given }: ReportsDeps): FastifyInstance {
  const deps = { ...given, ask }
  const listener = newListener({
    emit: deps.emit,
    isProxy: deps.isProxy,
    bodyBytesMax: providerCallMax,
    notFound: refuseOtherRoutes,
    onError: (error, { id: requestId }, reply) => {
      if (!(error instanceof StoreUnavailable)) return null
      deps.emit({ kind: 'store_unavailable', requestId, error, work: 'request' })
      return postpone(reply)
    },
  })
  listener.addHook('onSend', async (_request, reply) => {
    // A stranger keeps no connection, of which there are few.
    if (reply.statusCode >= 400 && reply.statusCode < 500) reply.header('connection', 'close')
  })
  listener.post<{ Params: { service: string } }>('/reports/:service', (request, reply) =>
    answerCall(deps, request, reply),
  )
  return listener
}

function refuseOtherRoutes(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ''] = request.url.split('?', 1)
  const isKnown = findEventService(path.replace(/^\/reports\//, '')) !== null
  if (request.method === 'POST' || !isKnown)
    return sendError(reply, 404, { code: 'not_found', message: 'There is nothing at this address.' })
  reply.header('allow', 'POST')
  return sendError(reply, 405, { code: 'method_not_allowed', message: 'Mail providers send POST.' })
}

/** If a server of the service does not answer, the call cannot be checked now. */
async function answerCall(deps: AskingDeps, request: ReportsRequest, reply: FastifyReply): Promise<FastifyReply> {
  try {
    return await answerProven(deps, request, reply)
  } catch (error) {
    if (!(error instanceof TryAgain)) throw error
    const { message: reason } = error
    deps.emit({ kind: 'provider_call_refused', provider: request.params.service, requestId: request.id, reason })
    return postpone(reply, reason)
  }
}

async function answerProven(deps: AskingDeps, request: ReportsRequest, reply: FastifyReply): Promise<FastifyReply> {
  const service = findEventService(request.params.service)
  if (service === null) return refuseOtherRoutes(request, reply)
  if (deps.isStopping()) return postpone(reply)
  // Its size is no secret, so it is said before anybody proves anything.
  const bytes = request.body === undefined ? new Uint8Array() : (request.body as Uint8Array | null)
  if (bytes === null) return sendError(reply, 400, tooLarge)
  const headers = request.headers as SignedCall['headers']
  const call = { headers, body: bytes, nowMs: deps.store.now(), ask: deps.ask }
  if (!(await provesCall(service.events, call, deps.keys))) return refuseStranger(deps, service, reply)
  const body = isUtf8(bytes) ? parseJson(bytes) : undefined
  if (body === undefined || nestedDeeper(body, nestingMax)) return sendError(reply, 400, notJson)
  if (!provesBody(service.events, body, deps.keys)) return refuseStranger(deps, service, reply)
  const events = service.events.open === undefined ? body : await service.events.open(toFields(body), deps.ask)
  if (nestedDeeper(events, nestingMax)) return sendError(reply, 400, notJson)
  const results = events === undefined ? {} : await recordEvents(deps, service, events)
  if (results.waiting !== undefined) return postpone(reply)
  return sendJson(reply, 200, JSON.stringify({ ok: true, results }))
}

const tooLarge = { code: 'body_too_large', message: `Send at most ${providerCallMax} bytes.` }
const notJson = {
  code: 'not_json',
  message: `The body is not JSON in UTF-8, or has more than ${nestingMax} levels of nesting.`,
}

function refuseStranger({ emit }: ReportsDeps, { name: provider }: EventService, reply: FastifyReply): FastifyReply {
  emit({ kind: 'provider_call_refused', provider, requestId: reply.request.id, reason: null })
  const message = 'The call does not prove that it comes from this provider: see POSTERN_REPORTS_KEYS.'
  return sendError(reply.header('www-authenticate', 'Basic realm="postern"'), 401, {
    code: 'invalid_proof',
    message,
  })
}

/** An email is still in the queue, or the store cannot be reached; or as `why` says. */
function postpone(reply: FastifyReply, why = 'The email is still in the queue, or the store does not answer') {
  const message = `${why}. Send this again later.`
  return sendError(reply.header('retry-after', retryAfterSeconds), 503, { code: 'try_again', message })
}
