/**
 * Keeps other web sites away from the inbox. A page on the web can make a browser send requests to
 * loopback, also under a name of its own that resolves there (DNS rebinding). So the Host must be a
 * loopback name, and an Origin, if there is one, must be the inbox itself.
 */
import type { FastifyInstance } from 'fastify'
import { sendError } from '../http/listener.ts'

const hostNames = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

export function guardInbox(listener: FastifyInstance): void {
  listener.addHook('onRequest', async (request, reply) => {
    const { host, origin } = request.headers
    const foreignHost = !hostNames.test(host ?? '')
    const foreignOrigin = origin !== undefined && origin !== `http://${host}`
    if (!foreignHost && !foreignOrigin) return
    const message = 'The inbox answers only its own pages, under localhost or 127.0.0.1.'
    return sendError(reply, 403, { code: 'foreign_origin', message })
  })
}
