/**
 * The connections of one process, apart by who waits on them: requests, on a few lanes by app, so
 * that groups do not queue behind each other's locks; what is looked at and changed by operators;
 * and the worker's. None is made before it is used.
 */
import { randomInt } from 'node:crypto'
import type { KeyedHash, KeyRing } from '../crypto/key-ring.ts'
import type { PostgresAddress } from '../database-address.ts'
import { type ClockOffset, readOffset } from '../shared/clock.ts'
import { Connection } from './connection.ts'

/** Groups under way at once in one process. More of them shared by the same apps would only wait. */
const laneCount = 2

const slowMs = 500

/** Counters are spread over so many rows (001_initial.sql). */
const slotCount = 64

export type PostgresContext = {
  readonly ring: KeyRing
  readonly keyedHash: KeyedHash
  readonly queueMax: number
  readonly clock: DatabaseClock
  readonly lanes: readonly Lane[]
  readonly general: Connection
  readonly claims: Connection
  readonly outcomes: Connection
  readonly upkeep: Connection
  /** `text` with its schema: SQL is written for a schema "postern". */
  readonly sql: (text: string) => string
  /** The rows that this process's worker counts in. */
  readonly slot: number
  /** Tells this process's transactions from others'; a 32-bit number. */
  readonly self: number
}

/** A connection for requests, and the row it counts the queue's depth in. */
export type Lane = { readonly connection: Connection; readonly slot: number }

export const writeSchema =
  (schema: string) =>
  (text: string): string =>
    text.replaceAll('postern.', `"${schema}".`)

type Parts = Pick<PostgresContext, 'ring' | 'keyedHash' | 'queueMax' | 'clock'>

export function newContext(address: PostgresAddress, parts: Parts): PostgresContext {
  const connect = () => new Connection({ address })
  const anySlot = () => randomInt(slotCount)
  return {
    ...parts,
    lanes: Array.from({ length: laneCount }, () => ({ connection: connect(), slot: anySlot() })),
    general: connect(),
    claims: connect(),
    outcomes: connect(),
    upkeep: connect(),
    sql: writeSchema(address.schema),
    slot: anySlot(),
    self: randomInt(2 ** 31),
  }
}

export const connectionsOf = ({
  lanes,
  general,
  claims,
  outcomes,
  upkeep,
}: PostgresContext): Connection[] => [
  ...lanes.map((lane) => lane.connection),
  general,
  claims,
  outcomes,
  upkeep,
]

/**
 * The database's clock as it is known here: asked now and then, counted monotonically in between.
 * What decides is read in the transaction itself; `offset` moves both alike, in tests.
 */
export class DatabaseClock {
  readonly offset: ClockOffset
  #knownMs = Date.now()
  #atMs = performance.now()

  constructor(offset: ClockOffset) {
    this.offset = offset
  }

  /** `askedAtMs` of `performance.now()`: the answer is from between then and now. A slow one tells little. */
  set(databaseMs: number, askedAtMs: number): void {
    const nowMs = performance.now()
    if (nowMs - askedAtMs > slowMs) return
    this.#knownMs = databaseMs
    this.#atMs = (askedAtMs + nowMs) / 2
  }

  get offsetMs(): number {
    return readOffset(this.offset)
  }

  nowMs(): number {
    return Math.floor(this.#knownMs + performance.now() - this.#atMs) + this.offsetMs
  }
}
