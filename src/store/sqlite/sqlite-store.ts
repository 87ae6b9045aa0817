/**
 * The embedded store, for one machine: one file, written by one thread per process. Several processes
 * may open the file (the command line does while the service runs), and each sees the others' changes
 * at once. Only the process with the worker lock sends. It learns of mail that another process queued by polling.
 */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { describeDuration } from '../../domain/duration.ts'
import { type KeyRing, makeKeyedHash, openHashKey } from '../crypto/key-ring.ts'
import type { KeyRecord, QueueMeasures } from '../operator-store.ts'
import type { PasskeyRecord, SessionRecord } from '../people-store.ts'
import { enqueueDeadlineMs } from '../shared/bounds.ts'
import { recipientName } from '../shared/bucket-names.ts'
import { type ClockOffset, newClockOffset, readClock } from '../shared/clock.ts'
import { delegate } from '../shared/delegate.ts'
import type { OnGroup } from '../shared/grouped-calls.ts'
import type { SchemaUse } from '../shared/migrations.ts'
import { peopleChanges } from '../shared/people.ts'
import { type EnqueueResult, type Finding, type Store, StoreUnavailable } from '../store.ts'
import { Connection, faultKind } from './connection.ts'
import { LockedClaims } from './locked-claims.ts'
import { migrate, requireFile } from './migrate.ts'
import {
  findApp,
  findAppBySlug,
  findEmail,
  findKey,
  findKeyByHash,
  findTokenByHash,
  type ListRead,
  queueGauge,
  type Reader,
  readerOf,
  readList,
} from './reads.ts'
import { ReaderThread, WriterThread } from './threads/threads.ts'
import { WorkerLock } from './worker-lock.ts'

export type SqliteOptions = {
  readonly path: string
  readonly ring: KeyRing
  readonly queueMax: number
  /** Whether opening may create or migrate the schema; usually `migrate`. */
  readonly schemaUse?: SchemaUse
  /** The file is damaged or the disk failed: nothing can be stored any more, so end the process. */
  readonly onFatal: (error: Error) => void
  readonly clock?: ClockOffset
  readonly onGroup?: OnGroup | undefined
}

/** Each is a function of `threads/operations.ts`, which the writer thread runs. */
const writes = [
  ...(['renewLeases', 'recordOutcome', 'maintain'] as const),
  ...(['createApp', 'updateApp', 'deleteApp', 'cancelDeletedAppMail'] as const),
  ...(['createKey', 'updateKey', 'replaceKey', 'revokeKey'] as const),
  ...(['retryEmail', 'cancelEmail', 'retryDeferred'] as const),
  ...(['createToken', 'revokeToken', 'noteTokenUse', 'recordAction'] as const),
  ...(Object.keys(peopleChanges) as (keyof typeof peopleChanges)[]),
  ...(['addActivity', 'addRefusals', 'noteNode', 'removeNode'] as const),
]

/** Each is one of `listReads`. */
const lists = [
  ...(['findPerson', 'listPeople', 'listSessions', 'listPasskeys'] as const),
  ...(['listApps', 'listKeys', 'listTokens', 'listEmails', 'listAudit', 'usage'] as const),
  ...(['readActivity', 'listRefusals', 'findRefusal', 'listNodes'] as const),
]

/** Opens the database. For a service the writer thread starts now, for a command with the first call. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { path, ring, queueMax } = options
  const clock = options.clock ?? newClockOffset()
  const prepared = prepare(options, readClock(clock))
  const { hashKey, connection = new Connection(path, { readOnly: true }) } = prepared
  const keyedHash = makeKeyedHash(hashKey)
  const writer = new WriterThread({ path, ring, hashKey, queueMax, clock }, options)
  const isService = (options.schemaUse ?? 'migrate') === 'migrate'
  if (isService) writer.start()
  const look = lookUp(readerOf(connection))
  // A command has nobody to delay, and a thread takes a tenth of a second to start.
  const reader = isService ? new ReaderThread(path) : null
  const read = (name: ListRead, args: readonly unknown[]): Promise<unknown> =>
    reader?.call({ name, args }) ?? look((open) => readList(open, name, args))
  const measure = () =>
    read('measureQueue', [readClock(clock)]) as Promise<Omit<QueueMeasures, 'diskFreeBytes'>>
  const claims = new LockedClaims(path, writer)
  const close = async () => {
    await reader?.close()
    if (connection.connection.isOpen) connection.close()
    await writer.close() // the last connection, and one that may write: SQLite then removes the WAL
    claims.close()
  }
  return {
    enqueue: (request) =>
      writer.call({ name: 'enqueue', args: [request] }, enqueueDeadlineMs) as Promise<EnqueueResult>,
    claimDue: (request) => claims.claimDue(request),
    ...delegate(writes, (name, args) => writer.call({ name, args })),
    ...delegate(lists, read),
    measureQueue: async () => ({ ...(await measure()), diskFreeBytes: freeBytes(path) }),
    listExpiringKeys: (until) => read('listExpiringKeys', [readClock(clock), until]) as Promise<KeyRecord[]>,
    listKeysMadeBy: (name) => read('listKeysMadeBy', [readClock(clock), name]) as Promise<KeyRecord[]>,
    queueSummary: () => read('queueSummary', [readClock(clock)]) as ReturnType<Store['queueSummary']>,
    usageToday: () => read('usageToday', [readClock(clock)]) as ReturnType<Store['usageToday']>,
    recipientName: (to) => recipientName(keyedHash, to),
    findApp: (idOrSlug) => look((open) => findApp(open, idOrSlug)),
    findKey: (id) => look((open) => findKey(open, id)),
    findKeyByHash: (hash) => look((open) => findKeyByHash(open, hash)),
    findTokenByHash: (hash) => look((open) => findTokenByHash(open, hash)),
    findSession: (hash) => look((open) => readList(open, 'findSession', [hash]) as SessionRecord | null),
    isSignInCode: (hash) => look((open) => readList(open, 'isSignInCode', [hash]) as boolean),
    findPasskey: (id) => look((open) => readList(open, 'findPasskey', [id]) as PasskeyRecord | null),
    findAppBySlug: (slug) => look((open) => findAppBySlug(open, slug)),
    findEmail: (id) => look((open) => findEmail(open, id)),
    queueGauge: () => look(queueGauge),
    examine: async () => [examineDisk(path), examineWorker(path, await measure(), readClock(clock))],
    openWorkerSession: () => {},
    now: () => readClock(clock),
    close,
  }
}

/**
 * Migrates as far as `schemaUse` allows, and makes or opens the database's hash key. For a service, the connection for
 * look-ups has read before the other one is closed: from then on a restore finds the database open.
 */
function prepare(
  { path, ring, schemaUse = 'migrate' }: SqliteOptions,
  nowMs: number,
): { readonly hashKey: Buffer; readonly connection?: Connection } {
  requireFile(path, schemaUse)
  const preparing = new Connection(path)
  const { ino } = statSync(path)
  try {
    migrate(preparing, { path, use: schemaUse, nowMs })
    const hashKey = preparing.transaction(() => {
      const row = preparing.sql("select sealed from secret where name = 'hash-key'").get()
      const { hashKey, reseal } = openHashKey(ring, row?.sealed as Uint8Array | undefined)
      if (reseal !== null && schemaUse !== 'open')
        preparing.sql("insert or replace into secret (name, sealed) values ('hash-key', ?)").run(reseal)
      return hashKey
    })
    return schemaUse === 'migrate' ? { hashKey, connection: openReader(path, ino) } : { hashKey }
  } finally {
    preparing.close()
  }
}

/** @param ino the file whose hash key was read: a restore may have replaced it since */
function openReader(path: string, ino: number): Connection {
  const connection = new Connection(path, { readOnly: true })
  connection.sql('select 1 from migration').get() // SQLite opens the file for others to see with the first read
  if (statSync(path).ino === ino) return connection
  connection.close()
  throw new StoreUnavailable(`${path} was replaced by a restore while it was opened: start again`)
}

/** Point look-ups, short enough for the event loop. Faults of SQLite reject as `StoreUnavailable`. */
const lookUp =
  (reader: Reader) =>
  async <T>(read: (reader: Reader) => T): Promise<T> => {
    try {
      return read(reader)
    } catch (error) {
      const closed = (error as { code?: string }).code === 'ERR_INVALID_STATE'
      if (!closed && faultKind(error) === 'bug') throw error
      throw new StoreUnavailable(closed ? 'the store is closed' : (error as Error).message, { cause: error })
    }
  }

/** Mail that is late by more may wait for a process that hangs. */
const hangsAfterMs = 60_000

/** Takes the lock for a moment, if nobody has it. */
function examineWorker(
  path: string,
  { depth, late }: Pick<QueueMeasures, 'depth' | 'late'>,
  nowMs: number,
): Finding {
  const check = 'worker'
  const lock = new WorkerLock(path)
  try {
    if (lock.tryTake() === 'not_held') {
      const lateMs = Math.max(0, ...late.map(({ since }) => nowMs - since))
      const hint = `, but mail has waited for ${describeDuration(lateMs)}. It tries a relay that was down again within 36 s. If the relays answer and no mail moves for longer, it hangs: kill it, and start it again`
      return { check, ok: true, detail: `a process sends${lateMs > hangsAfterMs ? hint : ''}` }
    }
    const none = 'no process sends: "postern serve" with the role worker does'
    return depth === 0
      ? { check, ok: true, detail: none }
      : { check, ok: false, detail: `${none}; ${depth} emails wait` }
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message }
  } finally {
    lock.release()
  }
}

const diskBytesMin = 256 * 1024 * 1024

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

function examineDisk(path: string): Finding {
  const free = freeBytes(path)
  const detail = `${Math.floor(free / 1024 / 1024)} MiB free on the database's disk`
  return { check: 'disk', ok: free >= diskBytesMin, detail }
}
