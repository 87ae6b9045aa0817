/** Connecting to the writable server of a cluster. */

import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import pg from 'pg'
import { explainReason } from '../../../domain/delivery/network-fault.ts'
import { formatHostPort } from '../../../domain/host-port.ts'
import type { DatabaseHost, PostgresAddress } from '../../database-address.ts'
import { StoreUnavailable } from '../../store.ts'
import { within } from './deadline.ts'

/** A client with its socket: while the server hangs, only the socket can be closed. */
export type Link = { readonly client: pg.Client; readonly socket: Socket }

/** Dials all hosts at once, so that a dead one delays nobody, and takes the first writable one. */
export async function dialWritable(address: PostgresAddress, endMs: number): Promise<Link> {
  const dials = address.hosts.map((host) => dial(address, host, endMs))
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
    const texts = reasons.map((reason: Error) => reason.message).join('; ')
    const advice = 'Is PostgreSQL running, and is POSTERN_DATABASE_URL correct?'
    throw new StoreUnavailable(`no writable database: ${texts}. ${advice}`, { cause: reasons[0] })
  }
}

async function dial(address: PostgresAddress, host: DatabaseHost, endMs: number): Promise<Link> {
  const socket = new Socket()
  const client = new pg.Client({ ...clientOptions(address, host), stream: () => socket })
  client.on('error', () => {})
  const begin = async () => {
    await client.connect()
    const { rows } = await client.query(beginSession)
    if (rows[0]?.writable !== true) throw new Error('it is read-only')
    await client.query(checkConnection).catch(() => {}) // not every platform has it
    return { client, socket }
  }
  try {
    return await within(begin(), endMs)
  } catch (error) {
    socket.destroy()
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreUnavailable(`${formatHostPort(host)}: ${explainReason(reason)}`, { cause: error })
  }
}

const keepAliveMs = 15_000

function clientOptions(address: PostgresAddress, { host, port }: DatabaseHost): pg.ClientConfig {
  const { tls } = address
  return {
    host,
    port,
    user: address.user,
    password: () => address.password, // a function, so that the driver does not read the environment
    database: address.database,
    application_name: 'postern',
    ssl: tls !== null && (tls.ca === null ? {} : { ca: readFileSync(tls.ca, 'utf8') }),
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    types: { getTypeParser: columnParser },
  }
}

/** Counts for operators take one core at most, and no time to be compiled: the others are for mail. */
const beginSession = `select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable,
  set_config('max_parallel_workers_per_gather', '0', false), set_config('jit', 'off', false)`
/**
 * The server ends statements whose client has closed the connection, except a commit that waits for a
 * standby.
 */
const checkConnection = "select set_config('client_connection_check_interval', '1s', false)"

const int8 = 20
const json = 114
const jsonb = 3802

/** 64-bit integers as numbers (ours stay below 2^53), JSON as text. */
const columnParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') => {
  if (oid === int8) return Number
  if (oid === json || oid === jsonb) return String
  return pg.types.getTypeParser(oid, format as 'text')
}
