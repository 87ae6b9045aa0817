/**
 * The public listener: `POST /v1/email` and nothing else. On that route it answers 202, 400, 401, 403,
 * 429 and 503 (spec 4), and 500 for a bug; any other path is 404, another method 405.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bodyBytesMax } from '../../domain/request/email-request.ts'
import { type ListenerDeps, newListener, sendError } from '../http/listener.ts'
import { type PostEmailDeps, postEmail } from './post-email.ts'

const path = '/v1/email'

export function newApiListener(deps: PostEmailDeps & ListenerDeps): FastifyInstance {
  const listener = newListener({
    emit: deps.emit,
    isProxy: deps.isProxy,
    bodyBytesMax,
    notFound: refuseOtherRoutes,
    // Fastify refuses a Content-Type that it cannot read before the handler runs. Such a request still
    // belongs to its key: it is charged, and answered with 400 or, without a key, 401.
    onError: (error, request, reply) =>
      error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? postEmail(deps, request, reply) : null,
  })
  listener.post(path, (request, reply) => postEmail(deps, request, reply))
  return listener
}

function refuseOtherRoutes(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (request.url.split('?', 1)[0] !== path) {
    return sendError(reply, 404, { code: 'not_found', message: `There is nothing here; send POST ${path}.` })
  }
  reply.header('allow', 'POST')
  return sendError(reply, 405, { code: 'method_not_allowed', message: `Send POST to ${path}.` })
}
