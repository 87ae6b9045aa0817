/**
 * The hardened HTTP listener that every part of `web` uses: bounded headers and times, our own answer
 * to everything (also below the routes), no request log that could hold a secret. Malformed HTTP is
 * answered 400 with our JSON; a request that arrives too slowly is closed without an answer.
 */
import { lookup } from 'node:dns/promises'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import fastify, {
  type FastifyError,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { isPrivateNetwork } from '../../domain/client-network.ts'
import { formatHostPort, reachOwn } from '../../domain/host-port.ts'
import { newId } from '../../domain/id.ts'
import type { Emit } from '../../observe/events.ts'
import { limitConnections } from './limit-connections.ts'
import { afterComplete, inOrder } from './one-by-one.ts'
import { readBody } from './read-body.ts'

const headersTimeoutMs = 5_000
const requestTimeoutMs = 10_000
/** A client that neither reads its answer nor sends anything is closed. No answer takes as long. */
const stalledMs = 120_000
const usualHeaderBytesMax = 16 * 1024
/** Bytes of headers and bodies that strangers can make a listener hold before they prove anything. */
const heldBytesMax = 128 * 1024 * 1024
const connectionsMax = 10_000

export type ListenAddress = { readonly host: string; readonly port: number }

/** The body of every error: `{ok: false, error: {code, message, requestId, …}}`. */
export const errorBody = (error: { code: string; message: string; requestId: string; issues?: unknown }): string =>
  JSON.stringify({ ok: false, error })

/** Sent as bytes: to a string Fastify would add a charset, which JSON does not have. */
export const sendJson = (reply: FastifyReply, status: number, body: string): FastifyReply =>
  reply.code(status).header('content-type', 'application/json').send(Buffer.from(body))

/** Answers with one of our errors. */
export function sendError(reply: FastifyReply, status: number, error: { code: string; message: string }): FastifyReply {
  return sendJson(reply, status, errorBody({ ...error, requestId: reply.request.id }))
}

/** Options that a listener has from the service. */
export type ListenerDeps = {
  readonly emit: Emit
  /** Whether an address may be that of a reverse proxy; `isPrivateNetwork` unless given. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

export type ListenerOptions = ListenerDeps & {
  /** Request line and headers; 16 KiB unless given. */
  readonly headerBytesMax?: number
  /** The handler gets null for a larger body. No body is kept unless this is given. */
  readonly bodyBytesMax?: number
  readonly notFound?: (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>
  /** Answers errors that the listener expects; null for all others, which are bugs. */
  readonly onError?: (
    error: FastifyError,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<FastifyReply> | FastifyReply | null
}

const answerNotFound = (_request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendError(reply, 404, { code: 'not_found', message: 'There is nothing at this address.' })

export function newListener(options: ListenerOptions): FastifyInstance {
  const { bodyBytesMax = 0, headerBytesMax = usualHeaderBytesMax, isProxy = isPrivateNetwork } = options
  const notFound = options.notFound ?? answerNotFound
  const listener = fastify(fastifyOptions(headerBytesMax, notFound))
  const max = Math.min(connectionsMax, Math.floor(heldBytesMax / (headerBytesMax + bodyBytesMax)))
  limitConnections(listener.server, { max, isProxy })
  refuseExpectations(listener.server)
  listener.removeAllContentTypeParsers()
  listener.addContentTypeParser('*', (_request: unknown, stream: Readable) => readBody(stream, bodyBytesMax))
  listener.addHook('onRequest', ({ raw }, reply, begin) => inOrder(raw, reply.raw, begin))
  listener.addHook('onRequest', requireHost)
  endConnectionsAtClose(listener)
  listener.setNotFoundHandler(notFound)
  listener.setErrorHandler((error: FastifyError, request, reply) => {
    if (request.raw.destroyed && !request.raw.complete) return reply.hijack() // the client disconnected
    if (request.is404) return notFound(request, reply)
    return options.onError?.(error, request, reply) ?? answerError(options, error, reply)
  })
  return listener
}

const fastifyOptions = (
  headerBytesMax: number,
  notFound: NonNullable<ListenerOptions['notFound']>,
): FastifyHttpOptions<Server> => ({
  logger: false,
  genReqId: () => newId('req', Date.now()),
  requestTimeout: requestTimeoutMs,
  connectionTimeout: stalledMs,
  keepAliveTimeout: 65_000,
  forceCloseConnections: 'idle',
  return503OnClosing: false,
  exposeHeadRoutes: true, // monitors and link scanners send HEAD
  routerOptions: { maxParamLength: headerBytesMax },
  http: {
    headersTimeout: headersTimeoutMs,
    maxHeaderSize: headerBytesMax,
    connectionsCheckingInterval: 1000,
    joinDuplicateHeaders: true, // two Authorization headers must not become the first one
    requireHostHeader: false, // answered by `requireHost`, with our JSON
  },
  clientErrorHandler: refuseMalformed,
  // An address with a wrong escape: people get the page for an unknown one.
  frameworkErrors: (_error, request, reply) => {
    if (/\btext\/html\b/.test(request.headers.accept ?? ''))
      return notFound(request as FastifyRequest, reply as FastifyReply)
    const error = { code: 'bad_request', message: 'The request line is malformed.' }
    return sendError(reply as FastifyReply, 400, error)
  },
})

async function requireHost(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const { host } = request.headers
  const missing = host === undefined && request.raw.httpVersion !== '1.0'
  if (!missing && !host?.includes(',')) return undefined
  reply.header('connection', 'close')
  return sendError(reply, 400, { code: 'bad_request', message: 'Send exactly one Host header.' })
}

function answerError({ emit }: ListenerOptions, error: FastifyError, reply: FastifyReply): FastifyReply {
  const { statusCode = 500 } = error
  if (statusCode >= 400 && statusCode < 500) {
    return sendError(reply, 400, { code: 'bad_request', message: 'The request cannot be read.' })
  }
  emit({ kind: 'bug', doing: 'answering a request', error, requestId: reply.request.id })
  const message = 'Postern failed. Its log has the reason, under this requestId.'
  return sendError(reply, 500, { code: 'internal_error', message })
}

/** The whole response for input that did not become a request. */
function rawRefusal(message: string): string {
  const body = errorBody({ code: 'bad_request', message, requestId: newId('req', Date.now()) })
  const head = `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`
  return `${head}\r\nConnection: close\r\n\r\n${body}`
}

function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  const silent = error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || !socket.writable
  if (silent) socket.destroy()
  else
    afterComplete(socket, () =>
      socket.end(rawRefusal('The request is malformed HTTP, or its headers are too large.'), () => socket.destroy()),
    )
}

function refuseExpectations(server: Server): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(400, { 'content-type': 'application/json', connection: 'close' })
    const message = 'The Expect header is not supported; leave it out.'
    response.end(errorBody({ code: 'bad_request', message, requestId: newId('req', Date.now()) }))
  })
}

/** A connection whose request is in progress when the listener closes would be kept for the next one. */
function endConnectionsAtClose(listener: FastifyInstance): void {
  let isClosing = false
  listener.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  listener.addHook('onSend', (_request, reply, _payload, done) => {
    if (isClosing) reply.header('connection', 'close')
    done()
  })
}

/** Closes a listener: requests in progress are answered, for at most `graceMs`. */
export async function close(listener: FastifyInstance, graceMs: number): Promise<void> {
  const timer = setTimeout(() => listener.server.closeAllConnections(), graceMs)
  await listener.close()
  clearTimeout(timer)
}

/** IPv4 where the machine has it. */
const findLocalhost = async (): Promise<string> =>
  (await lookup('localhost', 4).catch(() => lookup('localhost'))).address

const listenFaults: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use, perhaps by another Postern: choose another port',
  EACCES: 'is not allowed to this user (ports below 1024 are for root): choose another port',
  EADDRNOTAVAIL: 'is no address of this machine: choose another one',
  ENOTFOUND: 'is a name that does not resolve: write an IP address',
  EAI_AGAIN: 'is a name that does not resolve now: write an IP address',
  EAFNOSUPPORT: 'is of a family that this machine does not have: write an IPv4 address',
}

/** Says why an address cannot be listened on, and what to do; null for an error that says nothing of it. */
export function describeListenFault(address: ListenAddress, error: unknown): string | null {
  const fault = listenFaults[(error as NodeJS.ErrnoException).code ?? '']
  return fault === undefined ? null : `${formatHostPort(address)} ${fault}`
}

/** Whether an address can be listened on: null, or the error. */
export async function tryListen({ host, port }: ListenAddress): Promise<NodeJS.ErrnoException | null> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
    return null
  } catch (error) {
    return error as NodeJS.ErrnoException
  } finally {
    server.close()
  }
}

/** Listens, and returns the base URL for this machine. */
export async function listen(listener: FastifyInstance, address: ListenAddress): Promise<string> {
  // For `localhost`, Fastify would open a second server, which has none of the limits above.
  const host = address.host === 'localhost' ? await findLocalhost() : address.host
  await listener.listen({ host, port: address.port })
  const bound = listener.server.address() as AddressInfo
  return `http://${formatHostPort(reachOwn({ host: bound.address, port: bound.port }))}`
}
