/**
 * A hardened HTTP listener, the same for every face of Postern: bounded headers and times, no
 * answer that is not ours (also below the routes), no request log that could hold a secret.
 * What malformed HTTP gets is 400 with our JSON; what comes too slowly is closed without one.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { newId } from '../../domain/id.ts'
import { afterWhole, inTurn } from './one-by-one.ts'

const headersTimeoutMs = 5_000
const requestTimeoutMs = 10_000
const headerBytesUsual = 16 * 1024
const connectionsMax = 10_000

export type ListenAddress = { readonly host: string; readonly port: number }

/** The body of every error: `{ok: false, error: {code, message, requestId, …}}`. */
export const errorBody = (error: {
  code: string
  message: string
  requestId: string
  issues?: unknown
}): string => JSON.stringify({ ok: false, error })

/** As bytes: to a string Fastify would add a charset that JSON does not have. */
export const sendJson = (reply: FastifyReply, status: number, body: string): FastifyReply =>
  reply.code(status).header('content-type', 'application/json').send(Buffer.from(body))

/** Answers with one of our errors. */
export function sendError(
  reply: FastifyReply,
  status: number,
  error: { code: string; message: string },
): FastifyReply {
  return sendJson(reply, status, errorBody({ ...error, requestId: reply.request.id }))
}

export type ListenerOptions = {
  /** An error that nobody expected; answered with 500. */
  readonly onBug: (error: Error) => void
  /** Request line and headers; 16 KiB unless given. */
  readonly headerBytesMax?: number
  readonly notFound?: (request: FastifyRequest, reply: FastifyReply) => FastifyReply
  /** Takes errors of Fastify that are the request's fault; null for all others. */
  readonly onError?: (
    error: FastifyError,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<FastifyReply> | FastifyReply | null
}

const nothingHere = (_request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendError(reply, 404, { code: 'not_found', message: 'There is nothing at this address.' })

export function newListener(options: ListenerOptions): FastifyInstance {
  const app = fastify({
    logger: false,
    genReqId: () => newId('req', Date.now()),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: options.headerBytesMax ?? headerBytesUsual },
    http: {
      headersTimeout: headersTimeoutMs,
      maxHeaderSize: options.headerBytesMax ?? headerBytesUsual,
      connectionsCheckingInterval: 1000,
      joinDuplicateHeaders: true, // two Authorization headers must not become the first one
      requireHostHeader: false, // answered below, with our JSON
    },
    clientErrorHandler: refuseMalformed,
    frameworkErrors: (_error, _request, reply) => {
      sendError(reply as FastifyReply, 400, {
        code: 'bad_request',
        message: 'The request line is malformed.',
      })
    },
  })
  app.server.maxConnections = connectionsMax
  refuseExpectations(app.server)
  app.addHook('onRequest', ({ raw }, reply, begin) => inTurn(raw, reply.raw, begin))
  app.addHook('onRequest', async (request, reply) => {
    const { host } = request.headers
    const missing = host === undefined && request.raw.httpVersion !== '1.0'
    if (!missing && !host?.includes(',')) return
    reply.header('connection', 'close')
    return sendError(reply, 400, { code: 'bad_request', message: 'Send exactly one Host header.' })
  })
  app.setNotFoundHandler(options.notFound ?? nothingHere)
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (request.raw.destroyed && !request.raw.complete) return reply.hijack() // the client left
    if (request.is404) return (options.notFound ?? nothingHere)(request, reply)
    const answered = options.onError?.(error, request, reply) ?? null
    if (answered !== null) return answered
    const { statusCode = 500 } = error
    if (statusCode >= 400 && statusCode < 500) {
      return sendError(reply, 400, { code: 'bad_request', message: 'The request cannot be read.' })
    }
    options.onBug(error)
    return sendError(reply, 500, {
      code: 'internal_error',
      message: 'Postern failed; its log has the reason.',
    })
  })
  return app
}

/** The status line and body that go out where no request exists yet. */
function rawRefusal(message: string): string {
  const body = errorBody({ code: 'bad_request', message, requestId: newId('req', Date.now()) })
  const head = `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`
  return `${head}\r\nConnection: close\r\n\r\n${body}`
}

function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  const silent = error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || !socket.writable
  if (silent) socket.destroy()
  else
    afterWhole(socket, () =>
      socket.end(rawRefusal('The request is malformed HTTP, or its headers are too large.'), () =>
        socket.destroy(),
      ),
    )
}

function refuseExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(400, { 'content-type': 'application/json', connection: 'close' })
    const message = 'The Expect header asks for something unknown; leave it out.'
    response.end(errorBody({ code: 'bad_request', message, requestId: newId('req', Date.now()) }))
  })
}

/** Listens and returns the base URL that reaches it. */
export async function listen(app: FastifyInstance, address: ListenAddress): Promise<string> {
  await app.listen({ host: address.host, port: address.port })
  const bound = app.server.address() as AddressInfo
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
  return `http://${host}:${bound.port}`
}
