/**
 * One connection to the writable server of a cluster, made when it is first needed and made again
 * after it was lost. Statements run one after another. Every deadline is kept here, by closing the
 * connection: a commit that is cancelled while it waits for a standby would report success.
 */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { DatabaseHost, PostgresAddress } from '../database-url.ts'
import { StoreUnavailable } from '../store.ts'

const dialMs = 2000

/** One call of a group was at fault (SQLSTATE class 22 or 23): its neighbours were not. */
export class CallAtFault extends Error {
  override name = 'CallAtFault'
}

export type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

export type ConnectionOptions = {
  readonly address: PostgresAddress
  /** Told when a connection was made. */
  readonly onConnect?: (client: pg.Client) => void | Promise<void>
  /** Told when it was lost. */
  readonly onLost?: () => void
}

export class Connection {
  readonly #options: ConnectionOptions
  #client: pg.Client | null = null
  #warning: string | null = null
  #turn: Promise<unknown> = Promise.resolve()
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
      if (strict && this.#warning !== null)
        throw new StoreUnavailable(`the database warned: ${this.#warning}`)
      return rows as Row[]
    }, deadlineMs)
  }

  /** Several statements in one transaction. Where `work` throws, it is rolled back. */
  transaction<T>(work: (query: Query) => Promise<T>, deadlineMs: number): Promise<T> {
    return this.#run(async (client) => {
      await client.query('begin')
      try {
        const result = await work(async (text, values = []) => (await client.query(text, values)).rows)
        await client.query('commit')
        return result
      } catch (error) {
        this.#drop(client) // the server rolls back what was not committed
        throw error
      }
    }, deadlineMs)
  }

  /** Makes the connection, where there is none. */
  open(deadlineMs: number): Promise<void> {
    return this.#run(async () => {}, deadlineMs)
  }

  async #run<T>(work: (client: pg.Client) => Promise<T>, deadlineMs: number): Promise<T> {
    const endMs = performance.now() + deadlineMs
    const before = this.#turn
    let finish = () => {}
    this.#turn = new Promise<void>((resolve) => {
      finish = resolve
    })
    try {
      await within(before, endMs)
    } catch (error) {
      void before.then(finish)
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
    const client = this.#client ?? (await this.#connect(endMs))
    try {
      return await within(work(client), endMs)
    } catch (error) {
      if (!isServerRefusal(error)) this.#drop(client)
      throw error
    }
  }

  async #connect(endMs: number): Promise<pg.Client> {
    const client = await dialWritable(this.#options.address, Math.min(dialMs, endMs - performance.now()))
    client.on('notice', ({ severity, message }) => {
      if (severity === 'WARNING') this.#warning = message ?? 'no text'
    })
    client.on('error', () => this.#drop(client))
    client.on('end', () => this.#drop(client))
    this.#client = client
    await this.#options.onConnect?.(client)
    return client
  }

  #drop(client: pg.Client): void {
    if (this.#client !== client) return
    this.#client = null
    void client.end().catch(() => {}) // with a statement under way this closes the socket at once
    if (!this.#closed) this.#options.onLost?.()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#turn
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }
}

/** Rejects with `StoreUnavailable` where `endMs` (of `performance.now()`) passes first. */
async function within<T>(promise: Promise<T>, endMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const ms = Math.max(0, endMs - performance.now())
    timer = setTimeout(() => reject(new StoreUnavailable('the database did not answer in time')), ms)
  })
  promise.catch(() => {}) // what comes too late is nobody's
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks all hosts at once, so that a dead one delays nobody; the first writable one is taken. */
async function dialWritable(address: PostgresAddress, timeoutMs: number): Promise<pg.Client> {
  const dials = address.hosts.map((host) => dial(address, host, Math.max(1, timeoutMs)))
  try {
    const chosen = await Promise.any(dials)
    for (const other of dials)
      void other.then(
        (client) => (client === chosen ? undefined : client.end()),
        () => {},
      )
    return chosen
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors : [error]
    throw new StoreUnavailable(reasons.map(String).join('; '), { cause: reasons[0] })
  }
}

async function dial(
  address: PostgresAddress,
  { host, port }: DatabaseHost,
  timeoutMs: number,
): Promise<pg.Client> {
  const { tls } = address
  const client = new pg.Client({
    host,
    port,
    user: address.user,
    password: () => address.password, // as a function, lest the driver ask the environment
    database: address.database,
    application_name: 'postern',
    ssl: tls !== null && (tls.ca === null ? {} : { ca: readFileSync(tls.ca, 'utf8') }),
    keepAlive: true,
    connectionTimeoutMillis: timeoutMs,
    types: { getTypeParser: columnParser },
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query(sessionStart)
    if (rows[0]?.writable !== true) throw new Error('it is read-only')
    return client
  } catch (error) {
    void client.end().catch(() => {})
    throw new StoreUnavailable(`${host}:${port}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

// A server that notices a closed connection ends what it was doing for it, also while it waits for a lock.
const sessionStart = `select set_config('client_connection_check_interval', '1s', false),
  set_config('idle_in_transaction_session_timeout', '10s', false),
  not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable`

const int8 = 20
const json = 114
const jsonb = 3802

/** Numbers of 64 bits as numbers (ours stay below 2^53), JSON as the text it is. */
const columnParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') => {
  if (oid === int8) return Number
  if (oid === json || oid === jsonb) return String
  return pg.types.getTypeParser(oid, format as 'text')
}

const sqlState = (error: unknown): string | null =>
  error instanceof pg.DatabaseError ? (error.code ?? '') : null

/** The server refused a statement and is otherwise well; after anything else the connection goes. */
const isServerRefusal = (error: unknown): boolean => /^(22|23|40|42|55)/.test(sqlState(error) ?? '')

function toStoreError(error: unknown): Error {
  if (error instanceof StoreUnavailable) return error
  const state = sqlState(error)
  const message = error instanceof Error ? error.message : String(error)
  if (state !== null && /^2[23]/.test(state)) return new CallAtFault(message, { cause: error })
  const name = state === null ? '' : ` (SQLSTATE ${state})`
  if (state !== null || isNetworkError(error))
    return new StoreUnavailable(`the database: ${message}${name}`, { cause: error })
  return error instanceof Error ? error : new Error(message)
}

const isNetworkError = (error: unknown): boolean =>
  (error as { code?: unknown } | null)?.code !== undefined ||
  /^Connection terminated|^Client /.test(String((error as Error)?.message))
