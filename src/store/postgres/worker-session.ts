/**
 * The session of a worker: a direct connection on which it hears of queued mail, and holds an advisory
 * lock for as long as it lives. The leases of a worker name its lock. A worker whose lock nobody holds
 * any more is dead, or cut off, and the others take its mail back.
 *
 * The worker asks on this connection every `confirmEveryMs`. Its leases hold only while an answer is
 * younger than `goneForMs`, and nobody takes mail back before its lock has been missing for that long. So a
 * worker that stood still, or was cut off, knows that its leases are lost before another one may send.
 *
 * Behind a transaction pooler a session lock would stay on a connection that others use. So the lock is
 * taken only when a notification of our own has arrived on the idle connection, which a transaction
 * pooler never passes on. Without a lock, leases lapse.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { PostgresAddress } from '../database-address.ts'
import { Connection } from './connection.ts'
import type { QueueNotifier } from './queue-notifier.ts'

/** The first half of the advisory lock's key, in each database that holds a schema of ours. */
export const workerLockClass = 1_347_376_212
/** How long a worker's lock is missing before its mail is taken back. */
export const goneForMs = 1000
const confirmEveryMs = 250
const deadlineMs = 2000
/** After an outage the workers that live may hold outcomes to write: they are given this long. */
const recoverAfterMs = 5000
/** How long the first claim waits for the lock. */
const lockWithinMs = 1000

/**
 * The server ends the session of a machine that vanished after nine seconds: five without a word, then
 * two probes. `tcp_user_timeout` does so while an answer is under way.
 */
const noticeVanishedClient = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2;
set tcp_keepalives_count = 2; set tcp_user_timeout = 9000`

/** Begins the announcements of a session to itself, which do not say that mail was queued. */
const echoMark = 'echo '
const isEcho = (payload = ''): boolean => payload.startsWith(echoMark)

export type WorkerSessionOptions = {
  readonly notifier: Pick<QueueNotifier, 'channel' | 'announce' | 'isOwn'>
  /** Leads to the server directly, if there is such a way. */
  readonly address: PostgresAddress
}

export class WorkerSession {
  readonly #notifier: WorkerSessionOptions['notifier']
  readonly #connection: Connection
  #client: pg.Client | null = null
  /** Announced to see whether it arrives here; null once it has. */
  #echo: string | null = null
  /** The lock of this session; 0 while there is none. */
  #lock = 0
  #validUntilMs = 0
  #lostAtMs = Number.NEGATIVE_INFINITY
  #closed = false
  readonly #firstLock = Promise.withResolvers<void>()

  constructor({ notifier, address }: WorkerSessionOptions, onQueued: () => void) {
    this.#notifier = notifier
    this.#connection = new Connection({
      address,
      onConnect: async (client) => {
        this.#client = client
        this.#echo = echoMark + randomUUID()
        client.on('end', () => this.#lose(client))
        client.on('notification', ({ payload }) => {
          if (payload === this.#echo) void this.#takeLock(client).catch(() => {})
          else if (!isEcho(payload) && !notifier.isOwn(payload)) onQueued()
        })
        await client.query(`listen "${notifier.channel}"`)
        await client.query(noticeVanishedClient).catch(() => {}) // not every platform has them
        onQueued()
      },
    })
    void this.#keepAlive()
    void sleep(lockWithinMs, undefined, { ref: false }).then(this.#firstLock.resolve)
  }

  /** The lock that leases claimed now should name; 0 if there is none. */
  async lock(): Promise<number> {
    await this.#firstLock.promise
    return this.#lock
  }

  /** Whether the leases that name `lock` hold. Without a lock they hold until they lapse. */
  holds(lock: number): boolean {
    return lock === 0 || (lock === this.#lock && performance.now() < this.#validUntilMs)
  }

  /** False for a while after this session was lost: the server may have failed, not the workers. */
  mayTakeBack(): boolean {
    return performance.now() - this.#lostAtMs >= recoverAfterMs
  }

  /** A connection that only listens would not notice that it is dead. */
  async #keepAlive(): Promise<void> {
    while (!this.#closed) {
      await this.#confirm().catch(() => {})
      await sleep(confirmEveryMs, undefined, { ref: false })
    }
  }

  async #confirm(): Promise<void> {
    const askedAtMs = performance.now()
    const lock = this.#lock
    // The channel tells an operator whose session this is.
    await this.#connection.query(`select '${this.#notifier.channel}' as worker`, [], { deadlineMs })
    if (lock !== 0 && lock === this.#lock) this.#validUntilMs = askedAtMs + goneForMs
    else if (this.#echo !== null) await this.#notifier.announce(this.#echo)
  }

  async #takeLock(client: pg.Client): Promise<void> {
    this.#echo = null
    const askedAtMs = performance.now()
    const lock = randomInt(1, 2 ** 31)
    await this.#connection.query('select pg_advisory_lock($1, $2)', [workerLockClass, lock], { deadlineMs })
    if (client !== this.#client) return
    this.#lock = lock
    this.#validUntilMs = askedAtMs + goneForMs
    this.#firstLock.resolve()
  }

  #lose(client: pg.Client): void {
    if (client !== this.#client) return
    this.#client = null
    if (this.#lock !== 0) this.#lostAtMs = performance.now()
    this.#lock = 0
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#connection.close()
  }
}
