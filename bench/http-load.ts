/**
 * The HTTP load, as a process of its own: each client has one keep-alive connection, each request a
 * new recipient and a new `Idempotency-Key`. Raw sockets, because a client library would use more CPU
 * than a small server does.
 */
import { connect, type Socket } from 'node:net'
import { type LoopOrder, runLoop } from './loop.ts'

export type LoadOrder = LoopOrder & {
  /** The clients are spread over these servers. */
  readonly ports: readonly number[]
  /** The requests use these keys in turn. */
  readonly keys: readonly string[]
}

const recipients = 1_000_000

function requestText(keys: readonly string[], n: number): string {
  const key = keys[n % keys.length] ?? ''
  const token = n.toString(36).padStart(43, 'x')
  const url = `https://app.acme.test/auth/magic?token=${token}`
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const body = `{"to":"person${n % recipients}@example.com","type":"magic_link","url":"${url}","expiresAt":"${expiresAt}"}`
  return `POST /v1/email HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nIdempotency-Key: bench-${n}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

/** One connection: sends a request and returns the status. Answers must have a `Content-Length`. */
class Client {
  readonly #socket: Socket
  #pending = ''
  #onStatus: (status: string) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#read(chunk.toString('latin1')))
  }

  static open(port: number): Promise<Client> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new Client(socket)))
      socket.once('error', reject)
    })
  }

  #read(text: string): void {
    this.#pending += text
    const head = this.#pending.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.#pending)?.[1] ?? 0)
    if (this.#pending.length < head + 4 + length) return
    const status = this.#pending.slice(9, 12)
    this.#pending = this.#pending.slice(head + 4 + length)
    this.#onStatus(status)
  }

  ask(request: string): Promise<string> {
    return new Promise((resolve) => {
      this.#onStatus = resolve
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

process.on('message', async (order: LoadOrder) => {
  const { ports, keys } = order
  const opening = Array.from({ length: order.clients }, (_, n) => Client.open(ports[n % ports.length] ?? 0))
  const clients = await Promise.all(opening)
  const ask = (client: number, n: number) => clients[client]?.ask(requestText(keys, n)) ?? Promise.reject()
  process.send?.(await runLoop(order, ask))
  for (const client of clients) client.close()
})
