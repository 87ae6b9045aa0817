/**
 * Tells other processes that mail was queued: one NOTIFY for all commits of some milliseconds, on a
 * connection of its own. Inside the enqueue transaction NOTIFY would hold a database-wide lock over
 * the commit. Notifications may be lost, behind a transaction pooler always, so workers also poll.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresAddress } from '../database-address.ts'
import { Connection } from './connection.ts'

const notifyEveryMs = 10
const relistenMs = 1000
const checkEveryMs = 5000
const deadlineMs = 2000

export class QueueNotifier {
  readonly #channel: string
  readonly #listenAt: PostgresAddress
  readonly #sender: Connection
  /** Tells this process's own notifications from the others'. */
  readonly #self = randomUUID()
  #listener: Connection | null = null
  #sending = false
  #pending = false
  #closed = false

  constructor(address: PostgresAddress, listenAt: PostgresAddress) {
    this.#channel = `postern_${address.schema}`
    this.#listenAt = listenAt
    this.#sender = new Connection({ address })
  }

  /** Mail was committed. */
  notify(): void {
    this.#pending = true
    if (!this.#sending) void this.#send()
  }

  async #send(): Promise<void> {
    this.#sending = true
    while (this.#pending && !this.#closed) {
      this.#pending = false
      const values = [this.#channel, this.#self]
      await this.#sender.query('select pg_notify($1, $2)', values, { deadlineMs }).catch(() => {})
      await sleep(notifyEveryMs, undefined, { ref: false })
    }
    this.#sending = false
  }

  /** Calls `onQueued` when another process notifies, and each time when listening begins. */
  listen(onQueued: () => void): void {
    this.#listener = new Connection({
      address: this.#listenAt,
      onConnect: async (client) => {
        client.on('notification', ({ payload }) => {
          if (payload !== this.#self) onQueued()
        })
        await client.query(`listen "${this.#channel}"`)
        onQueued()
      },
    })
    void this.#keepListening()
  }

  /** A connection that only listens would not notice that it is dead, so it also asks now and then. */
  async #keepListening(): Promise<void> {
    const check = `select '${this.#channel}' as listening`
    while (!this.#closed) {
      const answer = await this.#listener?.query(check, [], { deadlineMs }).catch(() => null)
      await sleep(answer === null ? relistenMs : checkEveryMs, undefined, { ref: false })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([this.#sender.close(), this.#listener?.close()])
  }
}
