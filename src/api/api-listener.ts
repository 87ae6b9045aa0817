/**
 * The public listener: `POST /v1/email` and nothing else. On that route it answers only 202, 400,
 * 401, 403, 429 and 503 (spec 4); any other path is 404, another method 405.
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { newListener, sendError } from '../http/listener.ts'
import { type PostEmailDeps, postEmail } from './post-email.ts'
import { readBody } from './read-body.ts'

const path = '/v1/email'

export type ApiDeps = PostEmailDeps & { readonly onBug: (error: Error) => void }

export function newApiListener(deps: ApiDeps): FastifyInstance {
  const app = newListener(deps.onBug)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request: unknown, stream: Readable) => readBody(stream))
  app.post(path, (request, reply) => postEmail(deps, request, reply))
  app.setNotFoundHandler((request, reply) => {
    if (request.url.split('?', 1)[0] !== path) {
      return sendError(reply, 404, { code: 'not_found', message: `There is nothing here; send POST ${path}.` })
    }
    reply.header('allow', 'POST')
    return sendError(reply, 405, { code: 'method_not_allowed', message: `Send POST to ${path}.` })
  })
  app.setErrorHandler((error: Error & { code?: string }, request, reply) => {
    // Fastify's own refusal of a Content-Type it cannot read: judged as any other wrong one.
    if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return postEmail(deps, request, reply)
    if (request.raw.destroyed && !request.raw.complete) return reply.hijack() // the client left
    deps.onBug(error)
    return sendError(reply, 500, { code: 'internal_error', message: 'Postern failed; its log has the reason.' })
  })
  return app
}
