/**
 * The connections of one process, separated by who waits on them: requests, on a few lanes by app, so
 * that groups do not queue behind each other's locks; key look-ups and readiness; operators; hosted
 * pages, which anyone can open; and the worker. None is opened before it is used.
 */
import { randomInt } from 'node:crypto'
import { hasEnded } from '../../../domain/bearer.ts'
import type { EmailId } from '../../../domain/id.ts'
import { LruMap } from '../../../domain/lru-map.ts'
import type { KeyedHash, KeyRing } from '../../crypto/key-ring.ts'
import type { PostgresAddress } from '../../database-address.ts'
import { type ClockOffset, readOffset } from '../../shared/clock.ts'
import { RecentEmails } from '../../shared/recent-emails.ts'
import { Connection } from './connection.ts'
import { Pool } from './pool.ts'

/** Groups in progress at once in one process. More of them, sharing the same apps, would only wait. */
const laneCount = 2

/** Counters are spread over this many rows (001_initial.sql). */
const slotCount = 64

const operatorConnections = 2
const reportConnections = 2
const pageConnections = 2
/** Page views that may wait for a connection; further ones are answered 503 at once. */
const pagesWaitingMax = 100

const strangersWaitingMax = 100
const foundSecretsKept = 10_000

export type PostgresContext = {
  readonly ring: KeyRing
  readonly keyedHash: KeyedHash
  readonly queueMax: number
  readonly clock: DatabaseClock
  readonly lanes: readonly Lane[]
  readonly lookups: Connection
  readonly claims: Connection
  readonly outcomes: Connection
  readonly maintenance: Connection
  readonly operators: Pool
  readonly pages: Pool
  /** Measures, and what processes observe: neither waits for operators. */
  readonly observers: Pool
  /** Reports of mail servers: they wait for no operator, and no operator for them. */
  readonly reports: Pool
  /** Looks up tokens and sessions that worked when this process found them last. */
  readonly secrets: Pool
  /**
   * Looks up what anyone who reaches the operators' listener can make up: other tokens and sessions, codes,
   * passkeys.
   */
  readonly strangers: Pool
  readonly foundSecrets: LruMap<string, true>
  /** Where the search for mail of missing keys continues; null once it has ended. */
  readonly missingKeys: { after: EmailId | '' | null }
  /** When this process last looked at the partitions of the history. */
  readonly partitions: { checkedAtMs: number }
  /** The quoted name of Postern's schema. */
  readonly schema: string
  /** The row that this process's worker counts in. */
  readonly slot: number
  /** Tells this process's transactions from others'; a 32-bit number. */
  readonly self: number
}

/** A connection for requests, the row in which it counts the queue's depth, and what it queued lately. */
export type Lane = {
  readonly connection: Connection
  readonly slot: number
  readonly recent: RecentEmails
}

export const quoteSchema = (schema: string): string => `"${schema}"`

type Parts = Pick<PostgresContext, 'ring' | 'keyedHash' | 'queueMax' | 'clock' | 'missingKeys'>

export function newContext(address: PostgresAddress, parts: Parts): PostgresContext {
  const connect = () => new Connection({ address })
  const anySlot = () => randomInt(slotCount)
  return {
    ...parts,
    lanes: Array.from({ length: laneCount }, () => ({
      connection: connect(),
      slot: anySlot(),
      recent: new RecentEmails(),
    })),
    lookups: connect(),
    claims: connect(),
    outcomes: connect(),
    maintenance: connect(),
    operators: new Pool(address, { connectionsMax: operatorConnections }),
    observers: new Pool(address, { connectionsMax: 1 }),
    reports: new Pool(address, { connectionsMax: reportConnections }),
    pages: new Pool(address, { connectionsMax: pageConnections, waitingMax: pagesWaitingMax }),
    secrets: new Pool(address, { connectionsMax: 1 }),
    strangers: new Pool(address, { connectionsMax: 1, waitingMax: strangersWaitingMax }),
    foundSecrets: new LruMap(foundSecretsKept),
    partitions: { checkedAtMs: 0 },
    schema: quoteSchema(address.schema),
    slot: anySlot(),
    self: randomInt(2 ** 31),
  }
}

export async function closeContext(context: PostgresContext): Promise<void> {
  const { lanes, lookups, claims, outcomes, maintenance } = context
  const { operators, observers, reports, pages, secrets, strangers } = context
  const connections = [...lanes.map((lane) => lane.connection), lookups, claims, outcomes, maintenance]
  const pools = [operators, observers, reports, pages, secrets, strangers]
  await Promise.all([...connections, ...pools].map((closable) => closable.close()))
}

/**
 * Looks a secret up by its hash. Those that worked before wait for no others: strangers make up any number of
 * hashes.
 */
export async function findSecret<T extends { readonly expiresAt: number; readonly revokedAt?: number | null }>(
  { clock, foundSecrets, secrets, strangers }: PostgresContext,
  hash: string,
  find: (pool: Pool) => Promise<T | null>,
): Promise<T | null> {
  const found = await find(foundSecrets.get(hash) === true ? secrets : strangers)
  if (found === null || hasEnded({ revokedAt: null, ...found }, clock.nowMs())) foundSecrets.delete(hash)
  else foundSecrets.set(hash, true)
  return found
}

/** An answer that took longer tells too little about the database's clock. */
const slowMs = 500

/**
 * The database's clock as this process knows it: asked now and then, counted monotonically in between.
 * Decisions read the clock in their transaction; `offset` moves both in tests.
 */
export class DatabaseClock {
  readonly offset: ClockOffset
  #knownMs = Date.now()
  #atMs = performance.now()

  constructor(offset: ClockOffset) {
    this.offset = offset
  }

  /** The answer dates from between `askedAtMs` (of `performance.now()`) and now. */
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
