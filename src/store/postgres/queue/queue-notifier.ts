/**
 * Tells other processes that mail was queued, unless the worker of this process takes it: one NOTIFY for all
 * commits of some milliseconds, on a connection of its own. Inside the enqueue transaction NOTIFY would hold
 * a database-wide lock over the commit. Workers listen (`worker-session.ts`). Notifications may be lost,
 * behind a transaction pooler always, so workers also poll.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresAddress } from '../../database-address.ts'
import { Connection } from '../engine/connection.ts'

const notifyEveryMs = 10
/** A worker whose last claim of all mail is older does not keep up. */
const keepsUpMs = 1000
/** A worker that keeps up has claimed new mail by then. */
const ownTurnMs = 25
const deadlineMs = 2000

export class QueueNotifier {
  readonly channel: string
  readonly #sender: Connection
  /** Tells this process's own notifications from the others'. */
  readonly #self = randomUUID()
  #sending = false
  #pending = false
  #closed = false

  constructor(address: PostgresAddress) {
    this.channel = `postern_${address.schema}`
    this.#sender = new Connection({ address })
  }

  /**
   * Mail was committed. Nobody is notified if the worker of this process has been taking all mail, and takes
   * this too.
   * @param tookAllSince whether that worker's last claim began at that time or later, and took all there was
   */
  notifyUnless(tookAllSince: (ms: number) => boolean): void {
    const now = performance.now()
    if (!tookAllSince(now - keepsUpMs)) this.#notify()
    else setTimeout(() => !tookAllSince(now) && this.#notify(), ownTurnMs).unref()
  }

  #notify(): void {
    this.#pending = true
    if (!this.#sending) void this.#sendPending()
  }

  async #sendPending(): Promise<void> {
    this.#sending = true
    while (this.#pending && !this.#closed) {
      this.#pending = false
      await this.send(this.channel).catch(() => {})
      await sleep(notifyEveryMs, undefined, { ref: false })
    }
    this.#sending = false
  }

  /** Sends one notification, which other processes tell from those of this one. */
  send(channel: string): Promise<unknown> {
    return this.#sender.query('select pg_notify($1, $2)', [channel, this.#self], { deadlineMs })
  }

  isOwn(payload: string | undefined): boolean {
    return payload === this.#self
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#sender.close()
  }
}
