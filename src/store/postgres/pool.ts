/**
 * A few connections to the writable server of a cluster, for look-ups that may be slow or many.
 * A look-up beyond `waitingMax` is refused at once.
 */
import pg from 'pg'
import type { PostgresAddress } from '../database-address.ts'
import { StoreUnavailable } from '../store.ts'
import { type Query, runTransaction } from './connection.ts'
import { within } from './deadline.ts'
import { clientOptions, dialWritable } from './dial.ts'
import { isServerRefusal, toStoreError } from './errors.ts'

const idleMs = 30_000
const closeMs = 2000

export type PoolOptions = { readonly connectionsMax: number; readonly waitingMax?: number }

export class Pool {
  readonly #address: PostgresAddress
  readonly #options: PoolOptions
  /** The server that was writable last. */
  #pool: Promise<pg.Pool> | null = null
  #inProgress = 0
  #closed = false

  constructor(address: PostgresAddress, options: PoolOptions) {
    this.#address = address
    this.#options = options
  }

  query<Row = Record<string, unknown>>(
    text: string,
    values: unknown[],
    { deadlineMs }: { deadlineMs: number },
  ): Promise<Row[]> {
    return this.#run(async (client) => (await client.query(text, values)).rows as Row[], deadlineMs)
  }

  transaction<T>(work: (query: Query) => Promise<T>, deadlineMs: number): Promise<T> {
    return this.#run(async (client) => runTransaction(client, work), deadlineMs)
  }

  async #run<T>(work: (client: pg.PoolClient) => Promise<T>, deadlineMs: number): Promise<T> {
    const { connectionsMax, waitingMax = Number.POSITIVE_INFINITY } = this.#options
    if (this.#closed) throw new StoreUnavailable('the store is closed')
    if (this.#inProgress >= connectionsMax + waitingMax)
      throw new StoreUnavailable('too many look-ups are waiting for the database')
    this.#inProgress += 1
    try {
      return await this.#attempt(work, performance.now() + deadlineMs)
    } catch (error) {
      if (!isServerRefusal(error)) this.#reset()
      throw toStoreError(error)
    } finally {
      this.#inProgress -= 1
    }
  }

  async #attempt<T>(work: (client: pg.PoolClient) => Promise<T>, endMs: number): Promise<T> {
    this.#pool ??= this.#open(endMs)
    const pool = await within(this.#pool, endMs)
    const connecting = pool.connect()
    const client = await within(connecting, endMs).catch((error: unknown) => {
      void connecting.then(
        (late) => late.release(),
        () => {},
      )
      throw error
    })
    try {
      const result = await within(work(client), endMs)
      client.release()
      return result
    } catch (error) {
      client.release(true) // closed: a transaction may be open in it, or a statement in progress
      throw error
    }
  }

  async #open(endMs: number): Promise<pg.Pool> {
    const { host, socket } = await dialWritable(this.#address, endMs)
    socket.destroy()
    const pool = new pg.Pool({
      ...clientOptions(this.#address, host),
      max: this.#options.connectionsMax,
      idleTimeoutMillis: idleMs,
      allowExitOnIdle: true,
    })
    pool.on('error', () => {}) // an idle connection was lost: the pool opens another
    return pool
  }

  /** The next look-up finds the writable server again. */
  #reset(): void {
    const pool = this.#pool
    this.#pool = null
    void pool?.then(
      (old) => old.end(),
      () => {},
    )
  }

  async close(): Promise<void> {
    this.#closed = true
    const ending = this.#pool?.then((pool) => pool.end()) ?? Promise.resolve()
    await within(ending, performance.now() + closeMs).catch(() => {})
  }
}
