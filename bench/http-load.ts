/**
 * The load, as a process of its own: so many clients, each with one kept-alive connection. Closed
 * loop (the next request after the answer) or open loop (at a fixed rate whatever the answers do;
 * latency counts from when a request was due, so that a stall is not hidden by those it held up).
 * Each request has a new recipient and a new Idempotency-Key.
 */
import { connect, type Socket } from 'node:net'

export type LoadOrder = {
  readonly port: number
  readonly keys: readonly string[]
  readonly clients: number
  readonly ms: number
  /** Requests a second in an open loop; null for a closed one. */
  readonly rate: number | null
  readonly serial: number
}

export type LoadResult = {
  readonly perSecond: number
  readonly statuses: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

const recipients = 1_000_000

function requestText({ keys }: LoadOrder, n: number): string {
  const key = keys[n % keys.length] ?? ''
  const token = n.toString(36).padStart(43, 'x')
  const expiresAt = '2099-01-01T00:00:00Z'
  const url = `https://app.acme.test/auth/magic?token=${token}`
  const body = `{"to":"person${n % recipients}@example.com","type":"magic_link","url":"${url}","expiresAt":"${expiresAt}"}`
  return `POST /v1/email HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nIdempotency-Key: bench-${n}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

/** One connection: sends a request, calls back with the status. Answers have a Content-Length. */
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

async function run(order: LoadOrder): Promise<LoadResult> {
  const clients = await Promise.all(Array.from({ length: order.clients }, () => Client.open(order.port)))
  const statuses: Record<string, number> = {}
  const latencies: number[] = []
  const state = { n: order.serial, offered: 0 }
  const begunMs = performance.now()
  const endMs = begunMs + order.ms
  const one = async (client: Client, dueMs: number) => {
    const status = await client.ask(requestText(order, state.n++))
    statuses[status] = (statuses[status] ?? 0) + 1
    latencies.push(performance.now() - dueMs)
  }
  const { rate } = order
  const work = async (client: Client) => {
    while (performance.now() < endMs) {
      if (rate === null) {
        await one(client, performance.now())
        continue
      }
      const dueMs = begunMs + (state.offered++ * 1000) / rate
      const waitMs = dueMs - performance.now()
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      await one(client, dueMs)
    }
  }
  await Promise.all(clients.map(work))
  const seconds = (performance.now() - begunMs) / 1000
  for (const client of clients) client.close()
  latencies.sort((a, b) => a - b)
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return { perSecond: latencies.length / seconds, statuses, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}

process.on('message', async (order: LoadOrder) => {
  process.send?.(await run(order))
})
