/** A server in front of the real one that breaks answers on the socket, one fault per request. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd, type Scope } from '../../test/support/temporary.ts'

export const faults = [
  'none',
  'reset',
  'reset after the answer',
  'hang',
  'hang after the answer',
  'half a status line',
  'half a body',
  'half a body, then nothing',
  'half a 503',
  '503',
  '503 with Retry-After',
  '429',
  '429 with Retry-After',
  '429 until tomorrow',
  'a proxy’s page',
  'a redirect',
  'an echo',
] as const
export type Fault = (typeof faults)[number]

export type FaultyServer = {
  readonly url: string
  /** The fault of each request, in order. */
  readonly met: Fault[]
  /** How long the slowest request without a fault took: on a busy machine a client gives up before. */
  readonly slowestMs: () => number
}

export async function startFaultyServer(
  scope: Scope,
  upstream: string,
  next: (request: IncomingMessage) => Fault,
): Promise<FaultyServer> {
  const met: Fault[] = []
  let slowestMs = 0
  const server = createServer(async (request, response) => {
    const beganMs = performance.now()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const fault = next(request)
    met.push(fault)
    const forward = () => pass(upstream, request, Buffer.concat(chunks))
    await breakWith(fault, { request, response, body: Buffer.concat(chunks).toString(), forward })
    if (fault === 'none') slowestMs = Math.max(slowestMs, performance.now() - beganMs)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(scope, () => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    met,
    slowestMs: () => slowestMs,
  }
}

type Forwarded = { status: number; headers: Record<string, string>; body: string }

async function pass(upstream: string, { url, method, headers }: IncomingMessage, body: Buffer): Promise<Forwarded> {
  const names = ['authorization', 'content-type', 'idempotency-key']
  const sent = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
  const answer = await fetch(`${upstream}${url}`, {
    method: method ?? 'POST',
    headers: sent,
    body: new Uint8Array(body),
  })
  const text = await answer.text()
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...rest } = Object.fromEntries(answer.headers)
  return { status: answer.status, headers: { ...rest, 'content-length': String(text.length) }, body: text }
}

type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  body: string
  forward: () => Promise<Forwarded>
}

async function breakWith(fault: Fault, { request, response, body, forward }: Exchange): Promise<void> {
  const reset = () => void response.socket?.resetAndDestroy()
  const refuse = (status: number, code: string, retryAfter?: string, message = 'No.') => {
    const headers = { 'content-type': 'application/json', ...(retryAfter && { 'retry-after': retryAfter }) }
    const issues = [{ field: 'to', code: message, message }]
    const error = { code, message, requestId: message, issues }
    response.writeHead(status, headers).end(JSON.stringify({ ok: false, error }))
  }
  const half = async (then: () => void) => {
    const answer = await forward()
    response.writeHead(answer.status, answer.headers).write(answer.body.slice(0, 5), then)
  }
  switch (fault) {
    case 'none': {
      const answer = await forward()
      return void response.writeHead(answer.status, answer.headers).end(answer.body)
    }
    case 'reset':
      return reset()
    case 'reset after the answer':
      await forward()
      return reset()
    case 'hang':
      return
    case 'hang after the answer':
      return void (await forward())
    case 'half a status line':
      await forward()
      return void response.socket?.write('HTTP/1.1 20', reset)
    case 'half a body':
      return half(reset)
    case 'half a body, then nothing':
      return half(() => {})
    case 'half a 503':
      response.writeHead(503, { 'content-type': 'application/json', 'content-length': '100' })
      return void response.write('{"ok":false,"error":{"code":"queue', reset)
    case '503':
      return refuse(503, 'queue_unavailable')
    case '503 with Retry-After':
      return refuse(503, 'queue_full', '1')
    case '429':
      return refuse(429, 'key_rate_limited')
    case '429 with Retry-After':
      return refuse(429, 'key_rate_limited', '1')
    case '429 until tomorrow':
      return refuse(429, 'daily_limit_reached', '40000')
    case 'a proxy’s page':
      return void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>')
    case 'a redirect':
      return void response.writeHead(307, { location: 'https://elsewhere.test/' }).end()
    case 'an echo': {
      const said = `${request.headers.authorization} ${body}`
      const message = `${said} ${decodeURIComponent(said)} ${said.toLowerCase()} ${encodeURIComponent(said)}`
      return refuse(400, 'invalid_body', undefined, message)
    }
  }
}
