/**
 * The HTTP load, as a process of its own: each client has one keep-alive connection, each request a
 * new recipient and a new `Idempotency-Key`.
 */
import { HttpClient } from './http-client.ts'
import { type LoopOrder, runLoop } from './loop.ts'

export type LoadOrder = LoopOrder & {
  /** The clients are spread over these servers. */
  readonly ports: readonly number[]
  /** The requests use these keys in turn. */
  readonly keys: readonly string[]
  /** The requests ask for these languages in turn; without them, for none. */
  readonly locales?: readonly string[]
}

const recipients = 1_000_000

function requestText({ keys, locales = [] }: LoadOrder, n: number): string {
  const key = keys[n % keys.length] ?? ''
  const token = n.toString(36).padStart(43, 'x')
  const url = `https://app.acme.test/auth/magic?token=${token}`
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const locale = locales.length === 0 ? '' : `,"locale":"${locales[n % locales.length]}"`
  const body = `{"to":"person${n % recipients}@example.com","type":"magic_link","url":"${url}","expiresAt":"${expiresAt}"${locale}}`
  return `POST /v1/email HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nIdempotency-Key: bench-${n}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

process.on('message', async (order: LoadOrder) => {
  const { ports } = order
  const opening = Array.from({ length: order.clients }, (_, n) => HttpClient.open(ports[n % ports.length] ?? 0))
  const clients = await Promise.all(opening)
  const ask = (client: number, n: number) => clients[client]?.ask(requestText(order, n)) ?? Promise.reject()
  process.send?.(await runLoop(order, ask))
  for (const client of clients) client.close()
})
