/**
 * One POST over a kept connection. The moment of handing over is ours: the connection is ready first, then
 * the caller is asked, and only then head and body leave together.
 */
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { HttpAnswer } from '../../../domain/delivery/http-answer.ts'
import { ownProxies } from '../../../services/proxies.ts'

export type Posting = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export type Exchange =
  | { readonly kind: 'answered'; readonly answer: HttpAnswer }
  /** The message was handed over, and no whole answer came. */
  | { readonly kind: 'lost'; readonly why: string }
  /** There is no connection, so nothing was handed over. */
  | { readonly kind: 'unconnected'; readonly why: string; readonly isCertificate: boolean }
  /** The caller did not want it any more. */
  | { readonly kind: 'withheld' }

export type PostOptions = {
  /** Ends the wait for a connection. */
  readonly connecting: AbortSignal
  /** Ends the exchange at any point. */
  readonly stopped: AbortSignal
  /** Asked once, when the connection is ready. */
  readonly mayHandOver: () => boolean
  readonly answerMs?: number
}

const answerMaxMs = 60_000
const answerMaxBytes = 65_536

/**
 * @param idleMs how long an unused connection stays open: if the server closes it first, the next email that
 * goes over it may be sent twice
 */
export const newAgent = (
  url: URL,
  { connectionsMax, idleMs, ca }: { connectionsMax: number; idleMs: number; ca?: string },
): http.Agent => {
  const options = { keepAlive: true, maxSockets: connectionsMax, timeout: idleMs, ...ownProxies() }
  if (url.protocol === 'http:') return new http.Agent(options)
  return new https.Agent({ ...options, minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) })
}

/** Never rejects. */
export function post(agent: http.Agent, posting: Posting, options: PostOptions): Promise<Exchange> {
  const { url, headers, body } = posting
  const { connecting, stopped, mayHandOver, answerMs = answerMaxMs } = options
  if (stopped.aborted || connecting.aborted)
    return Promise.resolve({ kind: 'unconnected', why: noConnection, isCertificate: false })
  return new Promise((resolve) => {
    let isHandedOver = false
    let timer: NodeJS.Timeout | undefined
    const request = open(url, {
      agent,
      method: 'POST',
      headers: { ...headers, 'content-length': body.length },
    })
    // A key or token with a character that no header may have.
    if (request === null) return resolve({ kind: 'unconnected', why: noHeader, isCertificate: true })
    const settle = (exchange: Exchange) => {
      clearTimeout(timer)
      connecting.removeEventListener('abort', giveUp)
      stopped.removeEventListener('abort', stop)
      if (exchange.kind !== 'answered') request.destroy()
      resolve(exchange)
    }
    const fail = (why: string, isCertificate = false) =>
      settle(isHandedOver ? { kind: 'lost', why } : { kind: 'unconnected', why, isCertificate })
    const giveUp = () => isHandedOver || fail(noConnection)
    const stop = () => fail('the worker stopped')
    connecting.addEventListener('abort', giveUp)
    stopped.addEventListener('abort', stop)
    request.on('error', (error: Error & { code?: string }) => fail(describe(error), isCertificateFault(error)))
    request.once('socket', (socket) =>
      whenReady(socket, () => {
        if (!mayHandOver()) return settle({ kind: 'withheld' })
        isHandedOver = true
        timer = setTimeout(() => fail(`no answer within ${answerMs / 1000} s`), answerMs)
        request.end(body)
      }),
    )
    request.once('response', (response) =>
      readAnswer(response).then(
        (answer) => settle({ kind: 'answered', answer }),
        () => fail('the answer was cut off'),
      ),
    )
  })
}

const noConnection = 'no connection in time'
const noHeader = 'the key or the token has a character that a request cannot carry: copy it again'

function open(url: URL, options: http.RequestOptions): http.ClientRequest | null {
  try {
    return (url.protocol === 'http:' ? http : https).request(url, options)
  } catch {
    return null
  }
}

/** Whether a request can leave over the connection. */
export const isReady = (socket: Socket): boolean =>
  socket instanceof TLSSocket ? socket.authorized : !socket.connecting

function whenReady(socket: Socket, ready: () => void): void {
  if (isReady(socket)) ready()
  else socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', ready)
}

/** More than is ever needed ends the connection; the status counts all the same. Rejects if it is cut off. */
async function readAnswer(response: http.IncomingMessage): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > answerMaxBytes) break
  }
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, value?.toString()])),
    json: size > answerMaxBytes ? null : parse(Buffer.concat(chunks).toString()),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const describe = ({ code, message }: { readonly code?: string; readonly message: string }): string =>
  code === undefined || message.includes(code) ? message : `${code}: ${message}`

/** Codes of Node and OpenSSL for a certificate that is not trusted, has ended, or has another name. */
const isCertificateFault = ({ code = '', message }: { code?: string; message: string }): boolean =>
  /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|^ERR_TLS/.test(code) || message.includes('certificate')
