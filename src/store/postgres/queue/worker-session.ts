/**
 * The session of a worker: a direct connection on which it hears of queued mail, and holds an advisory
 * lock on the session's id. The leases of the worker name this id. A session whose lock nobody holds is
 * missing: its worker is dead or cut off, and the others take its mail back.
 *
 * The worker asks on this connection every `confirmEveryMs`. Its leases are valid only while an answer is
 * younger than `missingForMs`, and nobody takes mail back before the session has been missing for as long.
 * So a worker that stopped, or was cut off, knows that its leases are lost before another one may send.
 *
 * Behind a transaction pooler the lock would stay on a connection that others use. So it is taken only when a
 * notification to itself has arrived while the connection was idle: such a pooler passes one on only with
 * the answer to a query. Without a session, leases lapse.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Moment, sinceMs } from '../../../domain/moment.ts'
import type { PostgresAddress } from '../../database-address.ts'
import { momentNow } from '../../shared/clock.ts'
import type { Finding } from '../../store.ts'
import { Connection } from '../engine/connection.ts'
import { type MissingSessions, missingForMs, sessionLockClass } from './missing-sessions.ts'
import type { QueueNotifier } from './queue-notifier.ts'

const confirmEveryMs = 250
const deadlineMs = 2000
/** How long a claim waits for the id after the connection was opened or lost. */
const idWithinMs = 1000
/**
 * Between two notifications to itself, or two failed connections, the pause doubles up to these. After an
 * outage a session must be back, with its leases, before another worker takes mail back (`afterFailureMs`):
 * `simulation/sessions.pml` is a model of this protocol.
 */
const probePauseMaxMs = 60_000
const dialPauseMaxMs = 1000

/**
 * The server ends the session of a machine that vanished after nine seconds: five of silence, then
 * two probes. `tcp_user_timeout` does so while an answer is under way.
 */
const keepAlive = [
  ['tcp_keepalives_idle', '5'],
  ['tcp_keepalives_interval', '2'],
  ['tcp_keepalives_count', '2'],
  ['tcp_user_timeout', '9000'],
] as const

const direct = 'direct: the mail of a worker that dies is sent again after 1 to 2 s'
const pooled =
  'not direct (a transaction pooler?): the mail of a worker that dies waits for up to 60 s, and mail queued by other processes for up to 250 ms. POSTERN_DATABASE_LISTEN_URL can name a direct connection'

export type WorkerSessionOptions = {
  readonly notifier: QueueNotifier
  /** Leads to the server directly, if there is such a way. */
  readonly address: PostgresAddress
  readonly missing: MissingSessions
  /** The quoted name of Postern's schema. */
  readonly schema: string
}

export class WorkerSession {
  readonly #options: WorkerSessionOptions
  readonly #onQueued: () => void
  readonly #connection: Connection
  #client: pg.Client | null = null
  /** The channel of the notifications to itself. */
  #ownChannel = ''
  #probeAtMs = 0
  #probePauseMs = confirmEveryMs
  /** `probing`: a notification to itself is under way, and no query has been sent since. */
  #proof: 'none' | 'probing' | 'direct' = 'none'
  readonly #firstAnswer = Promise.withResolvers<Error | null>()
  /** 0 while there is none. */
  #id = 0
  /** The id before it, whose leases the new session adopts; 0 if there was none. */
  #lastId = 0
  #confirmed: Moment = { monotonicMs: 0, wallMs: 0 }
  #withoutIdSinceMs = performance.now()
  #hasId = Promise.withResolvers<void>()
  #closed = false

  constructor(options: WorkerSessionOptions, onQueued: () => void) {
    this.#options = options
    this.#onQueued = onQueued
    this.#connection = new Connection({
      address: options.address,
      onOpen: (client) => this.#begin(client),
    })
    void this.#keepConfirming()
  }

  /** The id that leases claimed now should name; 0 if there is none. */
  async id(): Promise<number> {
    const waitMs = this.#withoutIdSinceMs + idWithinMs - performance.now()
    if (this.#id === 0 && waitMs > 0)
      await Promise.race([this.#hasId.promise, sleep(waitMs, undefined, { ref: false })])
    return this.isValid(this.#id) ? this.#id : 0
  }

  /** Whether the leases that name this id are valid. Those that name none are, until they lapse. */
  isValid(id: number): boolean {
    if (id === 0) return true
    return id === this.#id && sinceMs(this.#confirmed, momentNow()) < missingForMs
  }

  async #begin(client: pg.Client): Promise<void> {
    this.#end()
    this.#client = client
    this.#ownChannel = `postern_${randomUUID()}`
    this.#probeAtMs = 0
    this.#probePauseMs = confirmEveryMs
    this.#proof = 'none'
    client.on('end', () => {
      if (client === this.#client) this.#end()
    })
    client.on('notification', ({ channel, payload }) => {
      if (channel === this.#ownChannel) this.#noteProof(client)
      else if (!this.#options.notifier.isOwn(payload)) this.#onQueued()
    })
    await client.query(`listen "${this.#options.notifier.channel}"`)
    await client.query(`listen "${this.#ownChannel}"`)
    this.#onQueued()
  }

  #end(): void {
    if (this.#id !== 0) {
      this.#options.missing.noteFailure()
      this.#hasId = Promise.withResolvers()
      this.#lastId = this.#id
      this.#withoutIdSinceMs = performance.now()
    }
    this.#client = null
    this.#id = 0
  }

  async #keepConfirming(): Promise<void> {
    let pauseMs = confirmEveryMs
    while (!this.#closed) {
      const failure = await this.#confirm().then(
        () => null,
        (error: Error) => error,
      )
      this.#firstAnswer.resolve(failure)
      pauseMs = failure === null ? confirmEveryMs : Math.min(2 * pauseMs, dialPauseMaxMs)
      await sleep(pauseMs, undefined, { ref: false })
    }
  }

  async #confirm(): Promise<void> {
    const asked = momentNow()
    const id = this.#id
    await this.#ask()
    if (id !== 0 && id === this.#id) this.#confirmed = asked
    if (this.#proof === 'direct' || asked.monotonicMs < this.#probeAtMs) return
    this.#proof = 'probing'
    await this.#options.notifier.send(this.#ownChannel)
    this.#probePauseMs = Math.min(2 * this.#probePauseMs, probePauseMaxMs)
    this.#probeAtMs = asked.monotonicMs + this.#probePauseMs
  }

  /** The text of the query tells an operator whose connection this is. */
  #ask(): Promise<unknown> {
    if (this.#proof === 'probing') this.#proof = 'none'
    return this.#connection.query(`select '${this.#options.notifier.channel}' as worker`, [], { deadlineMs })
  }

  #noteProof(client: pg.Client): void {
    if (this.#proof !== 'probing') return
    this.#proof = 'direct'
    this.#takeId(client).catch(() => {
      if (client === this.#client) this.#proof = 'none'
    })
  }

  async #takeId(client: pg.Client): Promise<void> {
    for (const setting of keepAlive) await this.#set(setting).catch(() => {}) // not every platform has each
    const asked = momentNow()
    const id = randomInt(1, 2 ** 31)
    const values = [sessionLockClass, id]
    await this.#connection.query('select pg_advisory_lock($1, $2)', values, { deadlineMs })
    await this.#adopt(id)
    if (client !== this.#client) return
    this.#id = id
    this.#confirmed = asked
    this.#hasId.resolve()
  }

  /**
   * This process lives, so what it leased before is not taken back while a relay has yet to answer.
   * Nothing more of it is handed over: those attempts go by the last id, which is not valid any more.
   */
  async #adopt(id: number): Promise<void> {
    if (this.#lastId === 0) return
    const text = `update ${this.#options.schema}.queue set session_id = $1 where state = 'sending' and session_id = $2`
    await this.#connection.query(text, [id, this.#lastId], { deadlineMs })
    this.#lastId = id
  }

  #set([name, value]: readonly [string, string]): Promise<unknown> {
    return this.#connection.query('select set_config($1, $2, false)', [name, value], { deadlineMs })
  }

  /** For `postern doctor`: whether a session is possible on this connection. */
  async examine(): Promise<Finding> {
    const check = 'worker session'
    const failure = await this.#firstAnswer.promise
    if (failure !== null) return { check, ok: false, detail: `cannot be opened: ${failure.message}` }
    return { check, ok: true, detail: (await this.id()) === 0 ? pooled : direct }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#connection.close()
  }
}
