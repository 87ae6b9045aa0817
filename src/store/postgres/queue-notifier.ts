/**
 * Word between processes that something was queued: one NOTIFY for all commits of some milliseconds,
 * on a connection of its own. Inside the enqueue transaction it would hold a lock of the whole
 * database over the commit. It may get lost, behind a transaction pooler always: workers poll too.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresAddress } from '../database-address.ts'
import { Connection } from './connection.ts'

const ringEveryMs = 10
const relistenMs = 1000
const checkEveryMs = 5000
const deadlineMs = 2000

export class QueueNotifier {
  readonly #channel: string
  readonly #listenAt: PostgresAddress
  readonly #rings: Connection
  /** Tells this process's own rings from the others'. */
  readonly #self = randomUUID()
  #listener: Connection | null = null
  #ringing = false
  #again = false
  #closed = false

  constructor(address: PostgresAddress, listenAt: PostgresAddress) {
    this.#channel = `postern_${address.schema}`
    this.#listenAt = listenAt
    this.#rings = new Connection({ address })
  }

  /** Something was committed. */
  ring(): void {
    this.#again = true
    if (!this.#ringing) void this.#ringOn()
  }

  async #ringOn(): Promise<void> {
    this.#ringing = true
    while (this.#again && !this.#closed) {
      this.#again = false
      const values = [this.#channel, this.#self]
      await this.#rings.query('select pg_notify($1, $2)', values, { deadlineMs }).catch(() => {})
      await sleep(ringEveryMs, undefined, { ref: false })
    }
    this.#ringing = false
  }

  /** Calls back when another process rings, and whenever it begins to listen. */
  listen(onRing: () => void): void {
    this.#listener = new Connection({
      address: this.#listenAt,
      onConnect: async (client) => {
        client.on('notification', ({ payload }) => {
          if (payload !== this.#self) onRing()
        })
        await client.query(`listen "${this.#channel}"`)
        onRing()
      },
    })
    void this.#keepListening()
  }

  /** Now and then it asks, since a connection that only listens would not notice that it is dead. */
  async #keepListening(): Promise<void> {
    const check = `select '${this.#channel}' as listening`
    while (!this.#closed) {
      const heard = await this.#listener?.query(check, [], { deadlineMs }).catch(() => null)
      await sleep(heard === null ? relistenMs : checkEveryMs, undefined, { ref: false })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([this.#rings.close(), this.#listener?.close()])
  }
}
