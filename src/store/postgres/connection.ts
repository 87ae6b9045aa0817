/**
 * One connection to the writable server of a cluster, made when it is first needed and made again
 * after it was lost. Statements run one after another. Every deadline is kept here, by closing the
 * connection: a commit that is cancelled while it waits for a standby would report success.
 */
import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import pg from 'pg'
import type { DatabaseHost, PostgresAddress } from '../database-address.ts'
import { StoreUnavailable } from '../store.ts'

const dialMs = 2000
const closeMs = 2000
const keepAliveMs = 15_000

/** One call of a group was at fault (SQLSTATE class 22 or 23): its neighbours were not. */
export class CallAtFault extends Error {
  override name = 'CallAtFault'
}

export type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

export type ConnectionOptions = {
  readonly address: PostgresAddress
  /** The last step of making a connection. */
  readonly onConnect?: (client: pg.Client) => Promise<unknown>
}

/** The socket is kept at hand, since a client that waits for a server that hangs cannot be ended politely. */
type Link = { readonly client: pg.Client; readonly socket: Socket }

export class Connection {
  readonly #options: ConnectionOptions
  #link: Link | null = null
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
      await client.query("begin; set local idle_in_transaction_session_timeout = '10s'")
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
    const link = this.#link ?? (await this.#connect(endMs))
    try {
      return await within(work(link.client), endMs)
    } catch (error) {
      if (!isServerRefusal(error)) this.#drop(link.client)
      throw error
    }
  }

  async #connect(endMs: number): Promise<Link> {
    const { address, onConnect } = this.#options
    const link = await dialWritable(address, Math.min(endMs, performance.now() + dialMs), onConnect)
    const { client } = link
    client.on('notice', ({ code, message }) => {
      // By its code: the severity is in the server's language.
      if (code?.startsWith('01')) this.#warning = message ?? 'no text'
    })
    client.on('error', () => this.#drop(client))
    client.on('end', () => this.#drop(client))
    this.#link = link
    return link
  }

  /** Closes the socket, whatever the server is doing for it. */
  #drop(client: pg.Client): void {
    if (this.#link?.client !== client) return
    this.#link.socket.destroy()
    this.#link = null
  }

  /** Ends politely where the server answers, and at once where it does not. */
  async close(): Promise<void> {
    this.#closed = true
    const endMs = performance.now() + closeMs
    await within(this.#turn, endMs).catch(() => {})
    await within(this.#link?.client.end() ?? Promise.resolve(), endMs).catch(() => {})
    this.#link?.socket.destroy()
    this.#link = null
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

type OnConnect = ConnectionOptions['onConnect']

/** Asks all hosts at once, so that a dead one delays nobody; the first writable one is taken. */
async function dialWritable(address: PostgresAddress, endMs: number, onConnect: OnConnect): Promise<Link> {
  const dials = address.hosts.map((host) => dial(address, host, { endMs, onConnect }))
  try {
    const chosen = await Promise.any(dials)
    for (const other of dials)
      void other.then(
        (link) => (link === chosen ? undefined : link.socket.destroy()),
        () => {},
      )
    return chosen
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors : [error]
    const said = reasons.map((reason: Error) => reason.message).join('; ')
    throw new StoreUnavailable(`no database that can be written to: ${said}`, { cause: reasons[0] })
  }
}

type DialOptions = { endMs: number; onConnect: OnConnect }

async function dial(
  address: PostgresAddress,
  { host, port }: DatabaseHost,
  { endMs, onConnect }: DialOptions,
): Promise<Link> {
  const { tls } = address
  const socket = new Socket()
  const client = new pg.Client({
    host,
    port,
    user: address.user,
    password: () => address.password, // as a function, lest the driver ask the environment
    database: address.database,
    application_name: 'postern',
    ssl: tls !== null && (tls.ca === null ? {} : { ca: readFileSync(tls.ca, 'utf8') }),
    stream: () => socket,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    types: { getTypeParser: columnParser },
  })
  client.on('error', () => {})
  const begin = async () => {
    await client.connect()
    const { rows } = await client.query(isWritable)
    if (rows[0]?.writable !== true) throw new Error('it is read-only')
    await client.query(noticeGone).catch(() => {}) // not every platform has it
    await onConnect?.(client)
    return { client, socket }
  }
  try {
    return await within(begin(), endMs)
  } catch (error) {
    socket.destroy()
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreUnavailable(`${host}:${port}: ${reason}`, { cause: error })
  }
}

const isWritable =
  "select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable"
/** Lets the server end what it does for a connection that was closed, but for a commit that waits for a standby. */
const noticeGone = "select set_config('client_connection_check_interval', '1s', false)"

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

// The driver's own errors of a lost connection have no code; the system's have one, and a syscall.
const isNetworkError = (error: unknown): boolean =>
  (error as { syscall?: unknown } | null)?.syscall !== undefined ||
  /^Connection terminated|^Client (was|has)/.test(String((error as Error)?.message))
