/**
 * The store for several machines, whose processes share one database. Requests go in groups, each
 * group one call on a lane chosen by its app; claims, outcomes and maintenance have connections
 * of their own. A process caches nothing that another process can change, except the apps of a
 * worker, which are checked by version.
 */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { AppId, KeyId } from '../../domain/id.ts'
import { LruMap } from '../../domain/lru-map.ts'
import { type KeyRing, makeKeyedHash } from '../crypto/key-ring.ts'
import type { PostgresAddress } from '../database-address.ts'
import { enqueueDeadlineMs } from '../shared/bounds.ts'
import { recipientName } from '../shared/bucket-names.ts'
import { type ClockOffset, newClockOffset } from '../shared/clock.ts'
import { delegate } from '../shared/delegate.ts'
import { GroupedCalls, type OnGroup, type Settled } from '../shared/grouped-calls.ts'
import type { SchemaUse } from '../shared/migrations.ts'
import type { Caller, EnqueueRequest, EnqueueResult, Finding, Store } from '../store.ts'
import { addActivity, addRefusals, noteNode, removeNode } from './activity.ts'
import { cancelDeletedAppMail, createApp, deleteApp, updateApp } from './apps.ts'
import { recordAction } from './audit.ts'
import { Claims } from './claim.ts'
import { Connection } from './connection.ts'
import { closeContext, DatabaseClock, type Lane, newContext, type PostgresContext } from './context.ts'
import { cancelEmail, retryDeferred, retryEmail } from './emails.ts'
import { type EnqueueCall, enqueueGroup, toResult } from './enqueue.ts'
import { CallAtFault } from './errors.ts'
import { examine } from './examine.ts'
import { clockMs } from './functions.ts'
import { createKey, replaceKey, revokeKey, updateKey } from './keys.ts'
import { maintain } from './maintenance.ts'
import { prepare } from './migrate.ts'
import { MissingSessions } from './missing-sessions.ts'
import { type OutcomeCall, recordOutcomes, renewLeases } from './outcome.ts'
import { peopleOperations } from './people.ts'
import { QueueNotifier } from './queue-notifier.ts'
import * as reads from './reads.ts'
import { createToken, noteTokenUse, revokeToken } from './tokens.ts'
import { WorkerSession } from './worker-session.ts'

export type PostgresOptions = {
  readonly address: PostgresAddress
  /** A direct connection for the worker's session, if `address` leads through a pooler. */
  readonly sessionAt?: PostgresAddress
  readonly ring: KeyRing
  readonly queueMax: number
  /** Whether opening may create or migrate the schema; usually `migrate`. */
  readonly schemaUse?: SchemaUse
  readonly clock?: ClockOffset
  /** How many requests share a transaction at most (128). */
  readonly groupMax?: number
  readonly onGroup?: OnGroup | undefined
}

const usualGroupMax = 128
/** How long a worker waits for the database; its leases last much longer. */
const workerDeadlineMs = 10_000
const clockEveryMs = 10_000
const callersMax = 10_000

/** The methods that are one function of the context and their arguments. */
const operations = {
  maintain,
  createApp,
  updateApp,
  deleteApp,
  cancelDeletedAppMail,
  createKey,
  updateKey,
  replaceKey,
  revokeKey,
  retryEmail,
  retryDeferred,
  cancelEmail,
  createToken,
  revokeToken,
  noteTokenUse,
  recordAction,
  addActivity,
  addRefusals,
  noteNode,
  removeNode,
  ...peopleOperations,
  readActivity: reads.readActivity,
  listRefusals: reads.listRefusals,
  findRefusal: reads.findRefusal,
  listNodes: reads.listNodes,
  measureQueue: reads.measureQueue,
  findApp: reads.findApp,
  findAppBySlug: reads.findAppBySlug,
  listApps: reads.listApps,
  findKey: reads.findKey,
  findKeyByHash: reads.findKeyByHash,
  listKeys: reads.listKeys,
  listExpiringKeys: reads.listExpiringKeys,
  listKeysMadeBy: reads.listKeysMadeBy,
  findTokenByHash: reads.findTokenByHash,
  listTokens: reads.listTokens,
  findEmail: reads.findEmail,
  listEmails: reads.listEmails,
  queueSummary: reads.queueSummary,
  queueGauge: reads.queueGauge,
  usage: reads.usage,
  usageToday: reads.usageToday,
  listAudit: reads.listAudit,
} satisfies Partial<Record<keyof Store, (context: PostgresContext, ...args: never[]) => unknown>>

type OperationName = keyof typeof operations

/** Connects, and migrates as far as `schemaUse` allows. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { address, ring, queueMax, schemaUse = 'migrate', groupMax = usualGroupMax, onGroup } = options
  const hashKey = await prepareSchema(address, { ring, schemaUse })
  const clock = new DatabaseClock(options.clock ?? newClockOffset())
  const context = newContext(address, { ring, queueMax, clock, keyedHash: makeKeyedHash(hashKey) })
  await setClock(context)
  const clockTimer = setInterval(() => void setClock(context).catch(() => {}), clockEveryMs).unref()
  const notifier = new QueueNotifier(address)
  const intake = new EnqueueLanes(context, { groupMax, onGroup }, () => notifier.notify())
  const missing = new MissingSessions()
  const openSession = (onQueued: () => void) =>
    new WorkerSession(
      { notifier, missing, schema: context.schema, address: options.sessionAt ?? address },
      onQueued,
    )
  /** After any failure of the server, workers that live may hold outcomes to write: their mail is not taken back soon. */
  const noting = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      missing.noteFailure()
      throw error
    })
  let session: WorkerSession | null = null
  const claims = new Claims(context, missing, () => session)
  const outcomes = new GroupedCalls<OutcomeCall>(
    (calls) => isolateFaults(calls, (some) => recordGroup(context, some)),
    { groupMax, inFlightMax: 1, onGroup },
  )
  const run = (name: OperationName, args: readonly unknown[]) =>
    (operations[name] as (context: PostgresContext, ...args: readonly unknown[]) => unknown)(context, ...args)
  return {
    ...delegate(Object.keys(operations) as OperationName[], run),
    enqueue: (request) => intake.enqueue(request),
    claimDue: (request) => claims.claimDue(request, workerDeadlineMs),
    renewLeases: (leases) => noting(renewLeases(context, leases, workerDeadlineMs)),
    recordOutcome: (lease, outcome) => noting(outcomes.submit({ lease, outcome }) as Promise<boolean>),
    openWorkerSession: (onQueued) => {
      session = openSession(onQueued)
    },
    examine: async () => [...(await examine(context)), await examineSession(openSession)],
    recipientName: (to) => recipientName(context.keyedHash, to),
    now: () => clock.nowMs(),
    close: async () => {
      clearInterval(clockTimer)
      await Promise.all([session?.close(), notifier.close(), closeContext(context)])
    },
  }
}

async function examineSession(open: (onQueued: () => void) => WorkerSession): Promise<Finding> {
  const session = open(() => {})
  const finding = await session.examine()
  await session.close()
  return finding
}

async function prepareSchema(
  address: PostgresAddress,
  options: { ring: KeyRing; schemaUse: SchemaUse },
): Promise<Buffer> {
  const connection = new Connection({ address })
  try {
    return await prepare(connection, { ...options, schema: address.schema })
  } finally {
    await connection.close()
  }
}

async function setClock({ clock, lookups }: PostgresContext): Promise<void> {
  const askedAtMs = performance.now()
  const text = `select ${clockMs('0')} as now_ms`
  const [row] = await lookups.query<{ now_ms: number }>(text, [], { deadlineMs: enqueueDeadlineMs })
  if (row !== undefined) clock.set(row.now_ms, askedAtMs)
}

async function recordGroup(context: PostgresContext, calls: readonly OutcomeCall[]): Promise<Settled[]> {
  const recorded = await recordOutcomes(context, calls, workerDeadlineMs)
  return recorded.map((value) => ({ value }))
}

/** Looks up the caller of a request, and queues the request on the lane of its app. */
class EnqueueLanes {
  readonly #context: PostgresContext
  readonly #onQueued: () => void
  /** The callers of key hashes, which never change. */
  readonly #callers = new LruMap<KeyHash, Caller>(callersMax)
  readonly #lookUps: GroupedCalls<KeyHash>
  readonly #lanes: readonly GroupedCalls<EnqueueCall>[]

  constructor(
    context: PostgresContext,
    groups: { readonly groupMax: number; readonly onGroup: OnGroup | undefined },
    onQueued: () => void,
  ) {
    this.#context = context
    this.#onQueued = onQueued
    const bounds = { groupMax: groups.groupMax, inFlightMax: 1 }
    this.#lookUps = new GroupedCalls((hashes) => this.#lookUp(hashes), bounds)
    this.#lanes = context.lanes.map(
      (lane) =>
        new GroupedCalls((calls) => isolateFaults(calls, (some) => this.#decide(lane, some)), {
          ...bounds,
          onGroup: groups.onGroup,
        }),
    )
  }

  async enqueue(request: EnqueueRequest): Promise<EnqueueResult> {
    const endMs = performance.now() + enqueueDeadlineMs
    const left = () => Math.max(0, endMs - performance.now())
    const caller =
      'appId' in request
        ? { appId: request.appId, keyId: null }
        : await this.#findCaller(request.keyHash, left())
    if (caller === null) return { kind: 'invalid_key' }
    const lane = this.#lanes[laneOf(caller.appId, this.#lanes.length)]
    return (await lane?.submit({ request, caller }, left())) as EnqueueResult
  }

  async #findCaller(hash: KeyHash, waitMs: number): Promise<Caller | null> {
    const known = this.#callers.get(hash)
    if (known !== undefined) return known
    const caller = (await this.#lookUps.submit(hash, waitMs)) as Caller | null
    if (caller !== null) this.#callers.set(hash, caller)
    return caller
  }

  async #lookUp(hashes: readonly KeyHash[]): Promise<Settled[]> {
    const { lookups, schema } = this.#context
    const text = `select key_hash, key_id, app_id from ${schema}.delivery_key where key_hash = any($1)`
    const rows = await lookups.query<{ key_hash: KeyHash; key_id: KeyId; app_id: AppId }>(text, [hashes], {
      deadlineMs: enqueueDeadlineMs,
    })
    const found = new Map(rows.map((row) => [row.key_hash, { keyId: row.key_id, appId: row.app_id }]))
    return hashes.map((hash) => ({ value: found.get(hash) ?? null }))
  }

  async #decide(lane: Lane, calls: readonly EnqueueCall[]): Promise<Settled[]> {
    const decisions = await enqueueGroup(this.#context, lane, calls, enqueueDeadlineMs)
    if (decisions.some((decision) => decision.kind === 'queued')) this.#onQueued()
    const stale = decisions.flatMap(({ kind }, index) =>
      kind === 'judge_again' ? [calls[index]?.caller.appId as AppId] : [],
    )
    // The decisions are committed, so a failure of this look-up fails only the calls that need it.
    const apps = await reads.appsById(this.#context, stale).catch((error: Error) => error)
    return decisions.map((decision, index) => {
      const caller = calls[index]?.caller as Caller
      if (decision.kind !== 'judge_again') return { value: toResult(decision, caller) }
      if (apps instanceof Error) return { error: apps }
      const app = apps.get(caller.appId)
      return { value: app === undefined ? { kind: 'invalid_key' } : { kind: 'judge_again', app } }
    })
  }
}

/** The end of an id is random, so apps spread evenly over the lanes. */
const laneOf = (appId: AppId, lanes: number): number => Number.parseInt(appId.slice(-6), 36) % lanes

/** One bad call must not fail the others: if one is at fault, each call is run alone. */
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
