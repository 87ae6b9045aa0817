/**
 * The store for several machines, whose processes share one database. Requests go in groups, each
 * group one call on a lane chosen by its app; claims, outcomes and maintenance have connections
 * of their own. A process caches nothing that another process can change, except the apps of a
 * worker, which are checked by version.
 */

import { enqueueDeadlineMs } from '../../domain/bounds.ts'
import { type KeyRing, makeKeyedHash, type OpenedSecrets } from '../crypto/key-ring.ts'
import type { PostgresAddress } from '../database-address.ts'
import { withoutOwn } from '../scripts/missing-keys.ts'
import { nameRecipient } from '../shared/bucket-names.ts'
import { type ClockOffset, newClockOffset } from '../shared/clock.ts'
import { GroupedCalls, type OnGroup, type Settled } from '../shared/grouped-calls.ts'
import { callFunction, toMethods } from '../shared/methods.ts'
import type { SchemaUse } from '../shared/migrations.ts'
import { makeReference, openReference } from '../shared/references.ts'
import type { Finding, Store } from '../store.ts'
import { Connection } from './engine/connection.ts'
import { closeContext, DatabaseClock, newContext, type PostgresContext } from './engine/context.ts'
import { describeDatabase, examine } from './engine/examine.ts'
import { scriptMethods } from './engine/run-script.ts'
import { cancelDeletedAppMail } from './queue/cancel-app-mail.ts'
import { cancelEmail, retryDeferred, retryEmail } from './queue/change-email.ts'
import { Claims } from './queue/claim.ts'
import { EnqueueLanes } from './queue/enqueue-lanes.ts'
import { clockMs } from './queue/functions.ts'
import { examinePartitions } from './queue/history-partitions.ts'
import { isolateFaults } from './queue/isolate-faults.ts'
import { maintain } from './queue/maintenance.ts'
import { MissingSessions } from './queue/missing-sessions.ts'
import { type OutcomeCall, recordOutcomes, renewLeases } from './queue/outcome.ts'
import { QueueNotifier } from './queue/queue-notifier.ts'
import { WorkerSession } from './queue/worker-session.ts'
import { newestSchema, prepare } from './schema/migrate.ts'

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
/** Nobody waits for an outcome. An email whose outcome is not stored is sent again if the process dies. */
const outcomePause = { ms: 20, untilWaiting: 16 }

/** The functions of the queue that are methods of the store as they are. */
const queueFunctions = { maintain, cancelDeletedAppMail, retryEmail, retryDeferred, cancelEmail }

/** Connects, and migrates as far as `schemaUse` allows. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { address, sessionAt, ring, queueMax, schemaUse = 'migrate' } = options
  const { groupMax = usualGroupMax, onGroup } = options
  const { hashKey, missing } = await prepareSchema(address, { ring, schemaUse })
  const clock = new DatabaseClock(options.clock ?? newClockOffset())
  const missingKeys = { after: missing.length > 0 ? ('' as const) : null }
  const keyedHash = makeKeyedHash(hashKey)
  const context = newContext(address, { ring, queueMax, clock, keyedHash, missingKeys })
  await setClock(context)
  const clockTimer = setInterval(() => void setClock(context).catch(() => {}), clockEveryMs).unref()
  const notifier = new QueueNotifier(address)
  const intake = new EnqueueLanes(context, { groupMax, onGroup }, () => notifier.notifyUnless(worker.tookAllSince))
  const worker = newWorkerMethods(context, { notifier, sessionAt: sessionAt ?? address, groupMax, onGroup })
  const scripts = scriptMethods(context)
  return {
    ...scripts,
    ...worker.methods,
    ...toMethods(queueFunctions, async (name, args) => callFunction(queueFunctions[name], context, args)),
    measureQueue: async () => ({ ...(await scripts.measureQueue()), diskFreeBytes: null }),
    listMissingKeys: async () => withoutOwn(ring, await scripts.listMissingKeys()),
    enqueue: (request) => intake.enqueue(request),
    describeDatabase: async () => ({ ...(await describeDatabase(context)), schema: newestSchema() }),
    examine: async () => [...(await examine(context)), await examinePartitions(context), await worker.examineSession()],
    nameRecipient: (to) => nameRecipient(context.keyedHash, to),
    makeReference: (id) => makeReference(context.keyedHash, id),
    openReference: (reference) => openReference(context.keyedHash, reference),
    now: () => clock.nowMs(),
    close: async () => {
      clearInterval(clockTimer)
      await Promise.all([worker.close(), notifier.close(), closeContext(context)])
    },
  }
}

type WorkerParts = {
  readonly notifier: QueueNotifier
  readonly sessionAt: PostgresAddress
  readonly groupMax: number
  readonly onGroup: OnGroup | undefined
}

/** The methods that only a worker calls, and the session that proves that it lives. */
function newWorkerMethods(context: PostgresContext, { notifier, sessionAt, groupMax, onGroup }: WorkerParts) {
  const missing = new MissingSessions()
  const newSession = (onQueued: () => void) =>
    new WorkerSession({ notifier, missing, schema: context.schema, address: sessionAt }, onQueued)
  /**
   * After any failure of the server, workers that live may hold outcomes to write: their mail is not taken
   * back soon.
   */
  const noting = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      missing.noteFailure()
      throw error
    })
  let session: WorkerSession | null = null
  const claims = new Claims(context, missing, () => session)
  const outcomes = new GroupedCalls<OutcomeCall>(
    (calls) => isolateFaults(calls, (some) => recordGroup(context, some)),
    { groupMax, inFlightMax: 1, pause: outcomePause, onGroup },
  )
  const methods: Pick<Store, 'claimDue' | 'renewLeases' | 'recordOutcome' | 'openWorkerSession'> = {
    claimDue: (request) => claims.claimDue(request, workerDeadlineMs),
    renewLeases: (leases) => noting(renewLeases(context, leases, workerDeadlineMs)),
    recordOutcome: (lease, outcome) => noting(outcomes.submit({ lease, outcome }) as Promise<boolean>),
    openWorkerSession: (onQueued) => {
      session = newSession(onQueued)
    },
  }
  return {
    methods,
    tookAllSince: claims.tookAllSince,
    examineSession: () => examineSession(newSession),
    close: async () => session?.close(),
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
): Promise<OpenedSecrets> {
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
