/**
 * One connection to the writable server of a cluster, opened when it is first needed and again after
 * it was lost. Statements run one after another. Deadlines are kept by closing the connection, never
 * by cancelling: a commit that is cancelled while it waits for a standby would report success.
 */
import type pg from 'pg'
import type { PostgresAddress } from '../../database-address.ts'
import { StoreUnavailable } from '../../store.ts'
import { within } from './deadline.ts'
import { dialWritable, type Link } from './dial.ts'
import { isServerRefusal, toStoreError } from './errors.ts'

const dialMs = 2000
const closeMs = 2000

export type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

export type ConnectionOptions = {
  readonly address: PostgresAddress
  /** Called for each new connection, before its first statement. */
  readonly onOpen?: (client: pg.Client) => Promise<unknown>
}

export class Connection {
  readonly #options: ConnectionOptions
  #link: Link | null = null
  #warning: string | null = null
  /** Settles when the last statement has ended. */
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** One statement in a transaction of its own. `strict`: a warning of the server is a failure. */
  query<Row = Record<string, unknown>>(
    text: string,
    values: unknown[],
    { deadlineMs, strict = false }: { deadlineMs: number; strict?: boolean },
  ): Promise<Row[]> {
    return this.#run(async (client) => {
      this.#warning = null
      const { rows } = await client.query(text, values)
      if (strict && this.#warning !== null) throw new StoreUnavailable(`the database warned: ${this.#warning}`)
      return rows as Row[]
    }, deadlineMs)
  }

  /** Several statements in one transaction, which is rolled back if `work` throws. */
  transaction<T>(work: (query: Query) => Promise<T>, deadlineMs: number): Promise<T> {
    return this.#run(async (client) => {
      try {
        return await runTransaction(client, work)
      } catch (error) {
        this.#drop(client) // the server rolls back what was not committed
        throw error
      }
    }, deadlineMs)
  }

  async #run<T>(work: (client: pg.Client) => Promise<T>, deadlineMs: number): Promise<T> {
    const endMs = performance.now() + deadlineMs
    const before = this.#last
    const { promise, resolve: finish } = Promise.withResolvers<void>()
    this.#last = promise
    try {
      await within(before, endMs)
    } catch (error) {
      void before.then(() => finish())
      throw error
    }
    try {
      return await this.#attempt(work, endMs)
    } catch (error) {
      throw toStoreError(error)
    } finally {
      finish()
    }
  }

  async #attempt<T>(work: (client: pg.Client) => Promise<T>, endMs: number): Promise<T> {
    if (this.#closed) throw new StoreUnavailable('the store is closed')
    const link = this.#link ?? (await this.#connect(endMs))
    try {
      return await within(work(link.client), endMs)
    } catch (error) {
      if (!isServerRefusal(error)) this.#drop(link.client)
      throw error
    }
  }

  async #connect(endMs: number): Promise<Link> {
    const { address, onOpen } = this.#options
    const link = await dialWritable(address, Math.min(endMs, performance.now() + dialMs))
    const { client } = link
    client.on('notice', ({ code, message }) => {
      // By its code: the severity is in the server's language.
      if (code?.startsWith('01')) this.#warning = message ?? 'no text'
    })
    client.on('error', () => this.#drop(client))
    this.#link = link
    try {
      await within(onOpen?.(client) ?? Promise.resolve(), endMs)
    } catch (error) {
      this.#drop(client)
      throw error
    }
    return link
  }

  /** Closes the socket, whatever the server is doing for it. */
  #drop(client: pg.Client): void {
    if (this.#link?.client !== client) return
    this.#link.socket.destroy()
    this.#link = null
  }

  /** Ends the session politely if the server answers, and closes the socket if it does not. */
  async close(): Promise<void> {
    this.#closed = true
    const endMs = performance.now() + closeMs
    await within(this.#last, endMs).catch(() => {})
    await within(this.#link?.client.end() ?? Promise.resolve(), endMs).catch(() => {})
    this.#link?.socket.destroy()
    this.#link = null
  }
}

/** The connection must be closed if this throws. */
async function runTransaction<T>(client: pg.ClientBase, work: (query: Query) => Promise<T>): Promise<T> {
  await client.query("begin; set local idle_in_transaction_session_timeout = '10s'")
  const result = await work(async (text, values = []) => (await client.query(text, values)).rows)
  await client.query('commit')
  return result
}
