/** An HTTP server whose answers a test decides, for mail APIs and token servers. With TLS if asked. */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { atEnd, type Scope } from './temporary.ts'

export type Asked = {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

export type Response = http.ServerResponse
/** Answers a request, or does something worse. */
export type Answering = (asked: Asked, response: Response, count: number) => void

const read = (name: string) => readFileSync(new URL(`tls/localhost.${name}.pem`, import.meta.url), 'utf8')
export const localCa = read('cert')

export const sendJson = (response: Response, status: number, value: unknown, headers = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))

export async function startApiServer(scope: Scope, answering: Answering, { tls = false } = {}) {
  const asked: Asked[] = []
  const sockets = new Set<Socket>()
  const onRequest: http.RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => {})
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = { method, path: url, headers, body: Buffer.concat(chunks).toString('latin1') }
      asked.push(one)
      answering(one, response, asked.length)
    })
  }
  const server = tls ? https.createServer({ cert: localCa, key: read('key') }, onRequest) : http.createServer(onRequest)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  atEnd(scope, close)
  const { port } = server.address() as AddressInfo
  return { port, url: `${tls ? 'https' : 'http'}://localhost:${port}`, asked, sockets, close }
}
