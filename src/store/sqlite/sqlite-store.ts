/**
 * The embedded store, for one machine: one file, written by one thread per process. Several processes
 * may open the file (the command line does while the service runs), and each sees the others' changes
 * at once. Only the process with the worker lock sends. It learns of mail that another process queued by
 * polling.
 */
import { statSync } from 'node:fs'
import { enqueueDeadlineMs } from '../../domain/bounds.ts'
import { type KeyRing, makeKeyedHash, type OpenedSecrets, openSecrets, type StoredSecret } from '../crypto/key-ring.ts'
import { withoutOwn } from '../scripts/missing-keys.ts'
import { changes, notes } from '../scripts/scripts.ts'
import { nameRecipient } from '../shared/bucket-names.ts'
import { type ClockOffset, newClockOffset, readClock } from '../shared/clock.ts'
import type { OnGroup } from '../shared/grouped-calls.ts'
import { toMethods } from '../shared/methods.ts'
import type { SchemaUse } from '../shared/migrations.ts'
import { makeReference, openReference } from '../shared/references.ts'
import { type EnqueueResult, type Store, StoreUnavailable } from '../store.ts'
import { CommandWriter } from './command-writer.ts'
import { Connection, faultKind } from './engine/connection.ts'
import { describeDatabase, examineDisk, examineWorker, freeBytes, requireSpace } from './engine/examine.ts'
import { DatabaseLost, findMoved, noteOpenFiles, type OpenFiles } from './engine/open-files.ts'
import type { ScriptTarget } from './engine/run-script.ts'
import { migrate, newestSchema, requireFile } from './files/migrate.ts'
import { type Call, queueFunctions } from './threads/calls.ts'
import { LockedClaims } from './threads/locked-claims.ts'
import { allReads, performRead, type ReadName } from './threads/reads.ts'
import { ReaderThread, type StoreWriter, WriterThread } from './threads/threads.ts'

export type SqliteOptions = {
  readonly path: string
  readonly ring: KeyRing
  readonly queueMax: number
  /** Whether opening may create or migrate the schema; usually `migrate`. */
  readonly schemaUse?: SchemaUse
  /** Whether this is a service, which has threads. A command works on its main thread. Default true. */
  readonly isService?: boolean
  /** The file is damaged or the disk failed: nothing can be stored any more, so end the process. */
  readonly onFatal: (error: Error) => void
  readonly clock?: ClockOffset
  readonly onGroup?: OnGroup | undefined
}

/** A process that is not asked for anything notices as soon as one that sends. */
const lookEveryMs = 250

/** Short enough for the event loop; all other reads take longer the more data there is. */
const shortReads: ReadonlySet<ReadName> = new Set([
  ...(['findApp', 'findAppBySlug', 'findKey', 'findKeyByHash', 'findTokenByHash'] as const),
  ...(['findSession', 'isSignInCode', 'findPasskey', 'findEmail', 'findReported', 'readQueueGauge'] as const),
  ...(['findSigningKeys', 'listAuthHookSecrets', 'listTransports'] as const),
])

/** Opens the database. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { isService = true, path, ring, queueMax } = options
  const clock = options.clock ?? newClockOffset()
  const prepared = prepare(options, readClock(clock))
  const { hashKey, missing, connection = new Connection(path, { readOnly: true }) } = prepared
  const keyedHash = makeKeyedHash(hashKey)
  const files = isService ? noteOpenFiles(path) : []
  let isOpen = true
  const onFatal = (error: Error) => options.onFatal(isOver(files) ? new DatabaseLost(error.message) : error)
  const data = { path, ring, lacksKeys: missing.length > 0, hashKey, queueMax, clock }
  const writer = isService
    ? new WriterThread({ ...data, files }, { ...options, onFatal })
    : new CommandWriter(data, onFatal)
  const looking = isService && setInterval(() => void endIfOver(files, writer), lookEveryMs).unref()
  const sql = (text: string) => connection.sql(text)
  const reader = isService ? new ReaderThread({ path, clock }) : null
  const read = async (name: ReadName, args: readonly unknown[]): Promise<unknown> => {
    const moved = isOpen ? findMoved(files) : null
    if (moved !== null) throw moved.error
    return reader === null || shortReads.has(name)
      ? readHere({ sql, nowMs: readClock(clock) }, { name, args })
      : reader.call({ name, args })
  }
  const readMethods = toMethods(allReads, read)
  const claims = new LockedClaims(path, writer, () => readDataVersion(connection))
  const close = async () => {
    if (looking) clearInterval(looking)
    await endIfOver(files, writer)
    isOpen = false
    await reader?.close()
    if (connection.connection.isOpen) connection.close()
    await writer.close() // the last connection, and one that may write: SQLite then removes the WAL
    claims.close()
  }
  return {
    enqueue: (request) =>
      writer.call({ name: 'enqueue', args: [request] }, enqueueDeadlineMs) as Promise<EnqueueResult>,
    claimDue: (request) => claims.claimDue(request),
    ...toMethods({ ...queueFunctions, ...changes, ...notes }, (name, args) => writer.call({ name, args })),
    ...readMethods,
    listMissingKeys: async () => withoutOwn(ring, await readMethods.listMissingKeys()),
    probeWrite: async () => {
      requireSpace(path)
      await writer.call({ name: 'probeWrite', args: [] })
    },
    measureQueue: async () => ({ ...(await readMethods.measureQueue()), diskFreeBytes: freeBytes(path) }),
    nameRecipient: (to) => nameRecipient(keyedHash, to),
    makeReference: (id) => makeReference(keyedHash, id),
    openReference: (reference) => openReference(keyedHash, reference),
    describeDatabase: async () => describeDatabase(path, newestSchema()),
    examine: async () => [examineDisk(path), examineWorker(path, await readMethods.measureQueue(), readClock(clock))],
    openWorkerSession: () => {},
    now: () => readClock(clock),
    close,
  }
}

/** NaN, which equals nothing, if it cannot be read: the writer then says why. */
function readDataVersion(connection: Connection): number {
  try {
    return connection.sql('pragma data_version').get()?.data_version as number
  } catch {
    return Number.NaN
  }
}

const isOver = (files: OpenFiles): boolean => findMoved(files)?.isOver === true

/** The writer compares the files before each call, also before one that does nothing, and then ends. */
async function endIfOver(files: OpenFiles, writer: StoreWriter): Promise<void> {
  if (isOver(files)) await writer.call({ name: 'renewLeases', args: [[]] }).catch(() => {})
}

/**
 * Migrates as far as `schemaUse` allows, and makes or opens the database's hash key. For a service, the
 * connection for look-ups has read before the other one is closed: from then on a restore finds the database
 * open.
 */
function prepare(
  { isService = true, path, ring, schemaUse = 'migrate' }: SqliteOptions,
  nowMs: number,
): Pick<OpenedSecrets, 'hashKey' | 'missing'> & { readonly connection?: Connection } {
  requireFile(path, schemaUse)
  const preparing = new Connection(path, { isNew: true })
  const { ino } = statSync(path)
  try {
    migrate(preparing, { path, use: schemaUse, nowMs })
    const { hashKey, missing } = preparing.transaction(() => {
      const stored = preparing.sql('select name, sealed from secret').all() as StoredSecret[]
      const opened = openSecrets(ring, stored)
      const write = preparing.sql('insert or replace into secret (name, sealed) values (?, ?)')
      if (schemaUse !== 'open') for (const { name, sealed } of opened.changed) write.run(name, sealed)
      return opened
    })
    return { hashKey, missing, ...(isService && { connection: openReader(path, ino) }) }
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

/** Faults of SQLite become `StoreUnavailable`. */
function readHere(target: ScriptTarget, call: Call<ReadName>): unknown {
  try {
    return performRead(target, call)
  } catch (error) {
    const closed = (error as { code?: string }).code === 'ERR_INVALID_STATE'
    if (!closed && faultKind(error) === 'bug') throw error
    throw new StoreUnavailable(closed ? 'the store is closed' : (error as Error).message, { cause: error })
  }
}
