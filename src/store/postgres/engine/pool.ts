/**
 * A few connections for calls that may be slow or many: a call takes one that is free. A call beyond
 * `waitingMax` is refused at once. Each connection finds the writable server by itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresAddress } from '../../database-address.ts'
import { StoreUnavailable } from '../../store.ts'
import { Connection, type Query } from './connection.ts'
import { within } from './deadline.ts'
import { isDeadlock } from './errors.ts'

const goOnMs = 50

export type PoolOptions = { readonly connectionsMax: number; readonly waitingMax?: number }

export class Pool {
  readonly #connections: readonly Connection[]
  readonly #free: Connection[]
  readonly #waiting = new Set<(connection: Connection) => void>()
  readonly #waitingMax: number

  constructor(address: PostgresAddress, options: PoolOptions) {
    const { connectionsMax, waitingMax = Number.POSITIVE_INFINITY } = options
    this.#connections = Array.from({ length: connectionsMax }, () => new Connection({ address }))
    this.#free = [...this.#connections]
    this.#waitingMax = waitingMax
  }

  query<Row = Record<string, unknown>>(
    text: string,
    values: unknown[],
    { deadlineMs }: { deadlineMs: number },
  ): Promise<Row[]> {
    return this.#run((connection, leftMs) => connection.query<Row>(text, values, { deadlineMs: leftMs }), deadlineMs)
  }

  /** After a deadlock `work` runs once more, when the other transaction has had time to go on. */
  async transaction<T>(work: (query: Query) => Promise<T>, deadlineMs: number): Promise<T> {
    const endMs = performance.now() + deadlineMs
    const run = () => this.#run((connection, leftMs) => connection.transaction(work, leftMs), endMs - performance.now())
    try {
      return await run()
    } catch (error) {
      if (!isDeadlock(error)) throw error
      await sleep(goOnMs) // until the other one wakes, it does not have the lock that it waits for
      return run()
    }
  }

  async #run<T>(work: (connection: Connection, leftMs: number) => Promise<T>, deadlineMs: number): Promise<T> {
    const endMs = performance.now() + deadlineMs
    const connection = this.#free.pop() ?? (await this.#untilFree(endMs))
    try {
      return await work(connection, endMs - performance.now())
    } finally {
      this.#giveBack(connection)
    }
  }

  async #untilFree(endMs: number): Promise<Connection> {
    if (this.#waiting.size >= this.#waitingMax)
      throw new StoreUnavailable('too many calls are waiting for the database')
    const { promise, resolve } = Promise.withResolvers<Connection>()
    this.#waiting.add(resolve)
    try {
      return await within(promise, endMs)
    } catch (error) {
      // The connection may have been given in the same moment.
      if (!this.#waiting.delete(resolve)) void promise.then((connection) => this.#giveBack(connection))
      throw error
    }
  }

  /** To the call that waits longest. */
  #giveBack(connection: Connection): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free.push(connection)
      return
    }
    this.#waiting.delete(next)
    next(connection)
  }

  /** Calls that wait are answered by their connections, which are closed. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }
}
