/**
 * Keeps other sites away from the console: a page on the web can make a browser send requests to
 * loopback, also under a name of its own that resolves there (DNS rebinding). So the Host must be
 * one of ours, and an Origin, where there is one, too.
 */
import type { FastifyInstance } from 'fastify'
import { sendError } from '../http/listener.ts'

const hostNames = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

export function guardInbox(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    const { host, origin } = request.headers
    const foreignHost = !hostNames.test(host ?? '')
    const foreignOrigin = origin !== undefined && origin !== `http://${host}`
    if (!foreignHost && !foreignOrigin) return
    const message = 'The console answers only pages of its own, under localhost or 127.0.0.1.'
    return sendError(reply, 403, { code: 'foreign_origin', message })
  })
}
