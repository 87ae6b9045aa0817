/**
 * The store for several machines: as many processes as you like on one database. Requests go in groups,
 * each group one call on a lane chosen by its app; claims, outcomes and upkeep have connections of
 * their own. Nothing is kept here that another process could make wrong: what is remembered either
 * never changes (the app of a key) or is checked by version in the transaction that uses it.
 */

import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { AppId, KeyId } from '../../domain/id.ts'
import { type KeyRing, makeKeyedHash } from '../crypto/key-ring.ts'
import type { PostgresAddress } from '../database-address.ts'
import { type ClockOffset, newClockOffset } from '../shared/clock.ts'
import { GroupedCalls, type Settled } from '../shared/grouped-calls.ts'
import { leaseMs, type Store } from '../store.ts'
import * as admin from './admin.ts'
import { Claims } from './claim.ts'
import { CallAtFault, Connection } from './connection.ts'
import { connectionsOf, DatabaseClock, type Lane, newContext, type PostgresContext } from './context.ts'
import { type EnqueueCall, enqueueGroup, type KnownKey, toResult } from './enqueue.ts'
import { clockMs } from './functions.ts'
import { maintain } from './maintenance.ts'
import { prepare } from './migrate.ts'
import { type OutcomeCall, recordOutcomes, renewLeases } from './outcome.ts'
import { QueueNotifier } from './queue-notifier.ts'
import * as reads from './reads.ts'

export type PostgresOptions = {
  readonly address: PostgresAddress
  /** A direct connection for LISTEN, where `address` leads through a pooler. */
  readonly listenAt?: PostgresAddress
  readonly ring: KeyRing
  readonly queueMax: number
  readonly clock?: ClockOffset
  /** How many requests share a transaction at most (128). */
  readonly groupMax?: number
}

const usualGroupMax = 128
const enqueueDeadlineMs = 2000
/** What a worker waits for; its leases outlive that by far. */
const workerDeadlineMs = 10_000
const clockEveryMs = 10_000
const knownKeysMax = 10_000

/** Reaches the database, and makes or migrates the schema where needed. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { address, ring, queueMax } = options
  const setup = new Connection({ address })
  try {
    const hashKey = await prepare(setup, address.schema, ring)
    const clock = new DatabaseClock(options.clock ?? newClockOffset())
    const parts = { ring, queueMax, clock, keyedHash: makeKeyedHash(hashKey) }
    const database = newContext(address, parts)
    const bell = new QueueNotifier(address, options.listenAt ?? address)
    const store = new PostgresStore(database, bell, options.groupMax ?? usualGroupMax)
    await store.askClock()
    return store
  } finally {
    await setup.close()
  }
}

class PostgresStore implements Store {
  readonly #database: PostgresContext
  readonly #bell: QueueNotifier
  readonly #claims: Claims
  readonly #keys = new Map<KeyHash, KnownKey>()
  readonly #keyLookUps: GroupedCalls<KeyHash>
  readonly #lanes: readonly GroupedCalls<EnqueueCall>[]
  readonly #outcomes: GroupedCalls<OutcomeCall>
  readonly #clockTimer: NodeJS.Timeout

  constructor(database: PostgresContext, bell: QueueNotifier, groupMax: number) {
    this.#database = database
    this.#bell = bell
    this.#claims = new Claims(database)
    const bounds = { groupMax, inFlightMax: 1 }
    this.#keyLookUps = new GroupedCalls((hashes) => this.#lookUpKeys(hashes), bounds)
    this.#lanes = database.lanes.map(
      (lane) => new GroupedCalls((calls) => isolateFaults(calls, (some) => this.#decide(lane, some)), bounds),
    )
    this.#outcomes = new GroupedCalls((calls) => isolateFaults(calls, (some) => this.#record(some)), bounds)
    this.#clockTimer = setInterval(() => void this.askClock().catch(() => {}), clockEveryMs).unref()
  }

  async askClock(): Promise<void> {
    const askedAtMs = performance.now()
    const text = `select ${clockMs('0')} as now_ms`
    const [row] = await this.#database.general.query<{ now_ms: number }>(text, [], {
      deadlineMs: enqueueDeadlineMs,
    })
    if (row !== undefined) this.#database.clock.set(row.now_ms, askedAtMs)
  }

  enqueue: Store['enqueue'] = async (request) => {
    const endMs = performance.now() + enqueueDeadlineMs
    const left = () => Math.max(0, endMs - performance.now())
    const known = this.#keys.get(request.keyHash)
    const key = known ?? ((await this.#keyLookUps.submit(request.keyHash, left())) as KnownKey | null)
    if (key === null) return { kind: 'invalid_key' }
    if (known === undefined) this.#remember(request.keyHash, key)
    const lane = this.#lanes[laneOf(key.appId, this.#lanes.length)]
    const result = await lane?.submit({ request, key }, left())
    return result as Awaited<ReturnType<Store['enqueue']>>
  }

  #remember(hash: KeyHash, key: KnownKey): void {
    const oldest = this.#keys.keys().next().value
    if (this.#keys.size >= knownKeysMax && oldest !== undefined) this.#keys.delete(oldest)
    this.#keys.set(hash, key)
  }

  async #lookUpKeys(hashes: readonly KeyHash[]): Promise<Settled[]> {
    const { general, sql } = this.#database
    const text = 'select key_hash, key_id, app_id from postern.delivery_key where key_hash = any($1)'
    const rows = await general.query<{ key_hash: KeyHash; key_id: KeyId; app_id: AppId }>(
      sql(text),
      [hashes],
      { deadlineMs: enqueueDeadlineMs },
    )
    const found = new Map(rows.map((row) => [row.key_hash, { keyId: row.key_id, appId: row.app_id }]))
    return hashes.map((hash) => ({ value: found.get(hash) ?? null }))
  }

  async #decide(lane: Lane, calls: readonly EnqueueCall[]): Promise<Settled[]> {
    const decisions = await enqueueGroup(this.#database, lane, calls, enqueueDeadlineMs)
    if (decisions.some((decision) => decision.kind === 'queued')) this.#bell.ring()
    const stale = decisions.flatMap(({ kind }, index) =>
      kind === 'judge_again' ? [calls[index]?.key.appId as AppId] : [],
    )
    // What was decided is committed, whatever becomes of this look.
    const apps = await reads.appsById(this.#database, stale).catch((error: Error) => error)
    return decisions.map((decision, index) => {
      if (decision.kind !== 'judge_again') return { value: toResult(decision) }
      if (apps instanceof Error) return { error: apps }
      const app = apps.get(calls[index]?.key.appId as AppId)
      return { value: app === undefined ? { kind: 'invalid_key' } : { kind: 'judge_again', app } }
    })
  }

  async #record(calls: readonly OutcomeCall[]): Promise<Settled[]> {
    const recorded = await recordOutcomes(this.#database, calls, workerDeadlineMs)
    return recorded.map((value) => ({ value }))
  }

  claimDue: Store['claimDue'] = (request) => this.#claims.claimDue(request, workerDeadlineMs)
  renewLeases: Store['renewLeases'] = (leases) =>
    renewLeases(this.#database, leases, { leaseMs, deadlineMs: workerDeadlineMs })
  recordOutcome: Store['recordOutcome'] = (hold, outcome) =>
    this.#outcomes.submit({ hold, outcome }) as Promise<boolean>
  maintain: Store['maintain'] = () => maintain(this.#database)
  onQueued: Store['onQueued'] = (listener) => this.#bell.listen(listener)

  createApp: Store['createApp'] = (slug, settings) => admin.createApp(this.#database, slug, settings)
  updateApp: Store['updateApp'] = (id, change) => admin.updateApp(this.#database, id, change)
  deleteApp: Store['deleteApp'] = (id) => admin.deleteApp(this.#database, id)
  cancelDeletedAppMail: Store['cancelDeletedAppMail'] = (id) => admin.cancelDeletedAppMail(this.#database, id)
  createKey: Store['createKey'] = (key) => admin.createKey(this.#database, key)
  revokeKey: Store['revokeKey'] = (id) => admin.revokeKey(this.#database, id)
  retryEmail: Store['retryEmail'] = (id) => admin.retryEmail(this.#database, id)
  cancelEmail: Store['cancelEmail'] = (id) => admin.cancelEmail(this.#database, id)

  findApp: Store['findApp'] = (idOrSlug) => reads.findApp(this.#database, idOrSlug)
  listApps: Store['listApps'] = () => reads.listApps(this.#database)
  listKeys: Store['listKeys'] = (app) => reads.listKeys(this.#database, app)
  findEmail: Store['findEmail'] = (id) => reads.findEmail(this.#database, id)
  listEmails: Store['listEmails'] = (query) => reads.listEmails(this.#database, query)
  queueSummary: Store['queueSummary'] = () => reads.queueSummary(this.#database)
  queueGauge: Store['queueGauge'] = () => reads.queueGauge(this.#database)
  usage: Store['usage'] = (app) => reads.usage(this.#database, app)
  examine: Store['examine'] = () => reads.examine(this.#database)

  now = (): number => this.#database.clock.nowMs()

  async close(): Promise<void> {
    clearInterval(this.#clockTimer)
    await Promise.all([
      this.#bell.close(),
      ...connectionsOf(this.#database).map((connection) => connection.close()),
    ])
  }
}

/** The end of an id is random, so that apps spread evenly. */
const laneOf = (appId: AppId, lanes: number): number => Number.parseInt(appId.slice(-6), 36) % lanes

/** One bad call must not answer for its neighbours: where one is at fault, each is run alone. */
async function isolateFaults<Call>(
  calls: readonly Call[],
  run: (calls: readonly Call[]) => Promise<Settled[]>,
): Promise<Settled[]> {
  try {
    return await run(calls)
  } catch (error) {
    if (!(error instanceof CallAtFault) || calls.length === 1) throw error
    const settled: Settled[] = []
    for (const call of calls) settled.push(...(await run([call]).catch((fault: Error) => [{ error: fault }])))
    return settled
  }
}
