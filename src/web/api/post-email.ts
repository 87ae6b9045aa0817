/**
 * `POST /v1/email` over HTTP: passes a request to `acceptEmail` and turns the answer into status,
 * headers and body (spec 4, 7).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { limitRefusals } from '../../domain/limit.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { type AcceptAnswer, type AcceptDeps, acceptEmail, isKnownKey } from '../../intake/accept-email.ts'
import { toRequestEvent } from '../../intake/request-event.ts'
import type { Emit } from '../../observe/events.ts'
import { describeAnswer, internalError, readTraceId, type Trace, traceRequest } from '../../observe/tracing.ts'
import { clientAddress } from '../http/client-address.ts'
import { errorBody, type ListenerDeps, sendJson } from '../http/listener.ts'

export type PostEmailDeps = AcceptDeps & {
  readonly isProxy?: ListenerDeps['isProxy']
  readonly isStopping: () => boolean
  readonly emit: Emit
  readonly random: () => number
}

/** Answers one request whose body (null if it was too large) has been read. */
export async function postEmail(
  deps: PostEmailDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const begunAtMs = performance.now()
  const { authorization } = request.headers
  const trace = traceRequest(request.headers, () => isKnownKey(deps.policies, authorization))
  const answer = deps.isStopping() ? stoppingAnswer : await accept(deps, request, trace)
  const traceId = readTraceId(trace.traceparent)
  const facts = { requestId: request.id, traceId, tookMs: performance.now() - begunAtMs }
  const event = toRequestEvent({ ...facts, source: 'api', message: null }, answer)
  trace.end(() => describeAnswer(event))
  if ('error' in answer)
    deps.emit({
      kind: 'store_unavailable',
      requestId: request.id,
      error: answer.error,
      work: 'request',
    })
  deps.emit(event)
  if ('rejection' in answer) return refuse(deps, reply, answer.rejection)
  reply.header('email-id', answer.emailId)
  if (answer.isCodeIgnored) reply.header('postern-ignored', 'code')
  if (answer.replayed) reply.header('idempotent-replayed', 'true')
  else if (answer.language !== null) reply.header('email-language', answer.language.tag)
  return sendJson(reply, 202, '{"ok":true}')
}

const stoppingAnswer: AcceptAnswer = {
  caller: null,
  rejection: { code: 'queue_unavailable', message: 'This server is stopping; the email was not queued. Try again.' },
}

const accept = async (deps: PostEmailDeps, request: FastifyRequest, trace: Trace): Promise<AcceptAnswer> => {
  const { headers, body } = request
  const incoming = {
    address: () => clientAddress(request, deps.isProxy),
    authorization: headers.authorization,
    idempotencyKey: headers['idempotency-key'] as string | undefined,
    body: {
      contentType: headers['content-type'],
      contentEncoding: headers['content-encoding'],
      bytes: body === undefined ? new Uint8Array() : (body as Uint8Array | null),
    },
  }
  try {
    return await acceptEmail(deps, incoming, trace)
  } catch (error) {
    trace.end(internalError)
    throw error
  }
}

function refuse(deps: PostEmailDeps, reply: FastifyReply, rejection: Rejection): FastifyReply {
  const { advice, code, limit, issues } = rejection
  const { status, message } = refusals[code]
  if (status === 401) {
    const tokenSent = /^bearer\b/i.test(reply.request.headers.authorization ?? '')
    reply.header('www-authenticate', `Bearer realm="postern"${tokenSent ? ', error="invalid_token"' : ''}`)
  }
  if (status === 503) reply.header('retry-after', String(1 + Math.floor(deps.random() * 5)))
  if (limit !== undefined && code in limitRefusals) {
    // draft-ietf-httpapi-ratelimit-headers-10
    const { policy } = limitRefusals[code as keyof typeof limitRefusals]
    const seconds = Math.ceil(limit.retryAfterMs / 1000)
    reply.header('retry-after', String(seconds))
    reply.header('ratelimit-policy', `"${policy}";q=${limit.quota};w=${limit.windowS}`)
    reply.header('ratelimit', `"${policy}";r=0;t=${seconds}`)
  }
  const whole = [rejection.message ?? message, advice].filter(Boolean).join(' ')
  const error = { code, message: whole, requestId: reply.request.id }
  return sendJson(reply, status, errorBody(issues === undefined ? error : { ...error, issues }))
}
