/**
 * `POST /v1/email` over HTTP: takes a request apart for `acceptEmail` and puts its answer into
 * status, headers and body (spec 4, 7).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { type AcceptAnswer, type AcceptDeps, acceptEmail } from '../../intake/accept-email.ts'
import { errorBody, sendJson } from '../http/listener.ts'

export type PostEmailDeps = AcceptDeps & {
  readonly isStopping: () => boolean
  /** One answered request, for the metrics. */
  readonly onAnswer: (status: number, code: string) => void
  readonly random: () => number
}

/** Answers one request whose body (or null, where it was too large) has been read. */
export async function postEmail(
  deps: PostEmailDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { headers } = request
  const answer: AcceptAnswer = deps.isStopping()
    ? { rejection: { code: 'queue_unavailable', message: 'This server is stopping; try again.' } }
    : await acceptEmail(deps, {
        authorization: headers.authorization,
        idempotencyKey: headers['idempotency-key'] as string | undefined,
        body: {
          contentType: headers['content-type'],
          contentEncoding: headers['content-encoding'],
          bytes: request.body === undefined ? new Uint8Array() : (request.body as Uint8Array | null),
        },
      })
  if (deps.isStopping()) reply.header('connection', 'close')
  if ('rejection' in answer) return refuse(deps, reply, answer.rejection)
  deps.onAnswer(202, answer.replayed ? 'replayed' : 'accepted')
  reply.header('email-id', answer.emailId)
  if (answer.replayed) reply.header('idempotent-replayed', 'true')
  return sendJson(reply, 202, '{"ok":true}')
}

const policyNames = {
  key_rate_limited: 'key',
  recipient_rate_limited: 'recipient',
  daily_limit_reached: 'daily',
} as const

function refuse(deps: PostEmailDeps, reply: FastifyReply, rejection: Rejection): FastifyReply {
  const { code, limit, issues } = rejection
  const { status, message } = refusals[code]
  deps.onAnswer(status, code)
  if (code === 'invalid_key') {
    const tokenSent = /^bearer\b/i.test(reply.request.headers.authorization ?? '')
    reply.header('www-authenticate', `Bearer realm="postern"${tokenSent ? ', error="invalid_token"' : ''}`)
  }
  if (status === 503) reply.header('retry-after', String(1 + Math.floor(deps.random() * 5)))
  if (limit !== undefined && code in policyNames) {
    // draft-ietf-httpapi-ratelimit-headers-10
    const policy = policyNames[code as keyof typeof policyNames]
    const seconds = Math.ceil(limit.retryAfterMs / 1000)
    reply.header('retry-after', String(seconds))
    reply.header('ratelimit-policy', `"${policy}";q=${limit.quota};w=${limit.windowS}`)
    reply.header('ratelimit', `"${policy}";r=0;t=${seconds}`)
  }
  const error = { code, message: rejection.message ?? message, requestId: reply.request.id }
  return sendJson(reply, status, errorBody(issues === undefined ? error : { ...error, issues }))
}
