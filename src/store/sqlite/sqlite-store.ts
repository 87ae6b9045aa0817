/**
 * The embedded store: one file, one writer thread, one checkpointer thread, and a read-only
 * connection here for what is only looked at. For one machine; several processes may open it (the
 * command line does while the service runs), and each sees the others' changes at once.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type KeyedHash, type KeyRing, makeKeyedHash, openHashKey } from '../crypto/key-ring.ts'
import { type ClockOffset, newClockOffset, readClock } from '../shared/clock.ts'
import { GroupedCalls, type Settled } from '../shared/grouped-calls.ts'
import { type Finding, type Store, StoreUnavailable } from '../store.ts'
import { Connection } from './connection.ts'
import { migrate } from './migrate.ts'
import * as reads from './reads.ts'
import type { CheckpointerData } from './threads/checkpointer.ts'
import type { Answer, Arguments, Call, OperationName } from './threads/operations.ts'
import type { Answered, FromWriter, ToWriter, WriterData } from './threads/writer.ts'

export type SqliteOptions = {
  readonly path: string
  readonly ring: KeyRing
  readonly queueMax: number
  /** The file is damaged or the disk failed: nothing more can be stored; end the process. */
  readonly onFatal: (error: Error) => void
  readonly clock?: ClockOffset
}

const groupMax = 256
const groupsInFlight = 2
const enqueueDeadlineMs = 2000

/** Opens the database (making and migrating it where needed) and starts its threads. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const clock = options.clock ?? newClockOffset()
  const hashKey = prepare(options, readClock(clock))
  const data: WriterData = {
    path: options.path,
    ring: options.ring,
    hashKey,
    queueMax: options.queueMax,
    clock,
    lastStep: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  }
  return new SqliteStore(options, data)
}

/** Migrates, and makes or opens the database's own hash key, sealed by the ring's first key. */
function prepare({ path, ring }: SqliteOptions, nowMs: number): Buffer {
  const database = new Connection(path)
  try {
    migrate(database, nowMs)
    return database.transaction(() => {
      const row = database.sql("select sealed from secret where name = 'hash-key'").get()
      const { hashKey, reseal } = openHashKey(ring, row?.sealed as Uint8Array | undefined)
      if (reseal !== null) database.sql("insert or replace into secret values ('hash-key', ?)").run(reseal)
      return hashKey
    })
  } finally {
    database.close()
  }
}

class SqliteStore implements Store {
  readonly #path: string
  readonly #reader: Connection
  readonly #keyedHash: KeyedHash
  readonly #clock: ClockOffset
  readonly #writer: Worker
  readonly #checkpointer: Worker
  readonly #calls: GroupedCalls<Call>
  readonly #groups = new Map<number, (answers: readonly Answered[]) => void>()
  readonly #onFatal: (error: Error) => void
  #nextGroup = 0
  #ended: Error | null = null
  #closed: Promise<void> | null = null

  constructor(options: SqliteOptions, data: WriterData) {
    this.#path = options.path
    this.#onFatal = options.onFatal
    this.#clock = data.clock
    this.#keyedHash = makeKeyedHash(Buffer.from(data.hashKey))
    this.#reader = new Connection(options.path, { readOnly: true })
    this.#writer = new Worker(new URL('./threads/writer.ts', import.meta.url), { workerData: data })
    this.#checkpointer = new Worker(new URL('./threads/checkpointer.ts', import.meta.url), {
      workerData: { path: data.path, lastStep: data.lastStep } satisfies CheckpointerData,
    })
    this.#writer.on('message', (message: FromWriter) => {
      this.#groups.get(message.group)?.(message.answers)
      this.#groups.delete(message.group)
    })
    for (const thread of [this.#writer, this.#checkpointer]) {
      thread.on('error', (error) => this.#end(error instanceof Error ? error : new Error(String(error))))
    }
    this.#calls = new GroupedCalls((calls) => this.#runGroup(calls), {
      groupMax,
      inFlightMax: groupsInFlight,
    })
  }

  async #runGroup(calls: readonly Call[]): Promise<Settled[]> {
    if (this.#ended !== null) throw new StoreUnavailable('the store is closed', { cause: this.#ended })
    const group = this.#nextGroup++
    const message: ToWriter = { group, calls }
    const answers = await new Promise<readonly Answered[]>((resolve) => {
      this.#groups.set(group, resolve)
      this.#writer.postMessage(message)
    })
    return answers.map((answer) => this.#settle(answer))
  }

  #settle(answer: Answered): Settled {
    if ('value' in answer) return answer
    if (answer.fault === 'bug') return { error: new Error(answer.message) }
    const error = new StoreUnavailable(answer.message)
    if (answer.fault === 'fatal') this.#end(error)
    return { error }
  }

  #end(error: Error): void {
    if (this.#ended !== null) return
    this.#ended = error
    for (const settle of this.#groups.values()) settle([])
    this.#groups.clear()
    this.#onFatal(error)
  }

  #call<N extends OperationName>(name: N, args: Arguments<N>, deadlineMs?: number): Promise<Answer<N>> {
    return this.#calls.submit({ name, args }, deadlineMs) as Promise<Answer<N>>
  }

  enqueue: Store['enqueue'] = (request) => this.#call('enqueue', [request], enqueueDeadlineMs)
  claimDue: Store['claimDue'] = (request) => this.#call('claimDue', [request])
  renewLeases: Store['renewLeases'] = (leases) => this.#call('renewLeases', [leases])
  recordOutcome: Store['recordOutcome'] = (hold, outcome) => this.#call('recordOutcome', [hold, outcome])
  maintain: Store['maintain'] = () => this.#call('maintain', [])
  onQueued: Store['onQueued'] = () => {} // the one process that queues is the one that sends

  createApp: Store['createApp'] = (slug, settings) => this.#call('createApp', [slug, settings])
  updateApp: Store['updateApp'] = (id, change) => this.#call('updateApp', [id, change])
  createKey: Store['createKey'] = (key) => this.#call('createKey', [key])
  revokeKey: Store['revokeKey'] = (id) => this.#call('revokeKey', [id])
  retryEmail: Store['retryEmail'] = (id) => this.#call('retryEmail', [id])
  cancelEmail: Store['cancelEmail'] = (id) => this.#call('cancelEmail', [id])

  deleteApp: Store['deleteApp'] = (id) => this.#call('deleteApp', [id])
  cancelDeletedAppMail: Store['cancelDeletedAppMail'] = (id) => this.#call('cancelDeletedAppMail', [id])

  findApp: Store['findApp'] = async (idOrSlug) => reads.findApp(this.#reader, idOrSlug)
  listApps: Store['listApps'] = async () => reads.listApps(this.#reader)
  listKeys: Store['listKeys'] = async (app) => reads.listKeys(this.#reader, app)
  findEmail: Store['findEmail'] = async (id) => reads.findEmail(this.#reader, id)
  listEmails: Store['listEmails'] = async (query) => reads.listEmails(this.#reader, query, this.#keyedHash)
  queueSummary: Store['queueSummary'] = async () => reads.queueSummary(this.#reader)
  queueGauge: Store['queueGauge'] = async () => reads.queueGauge(this.#reader)
  usage: Store['usage'] = async (app) => reads.usage(this.#reader, app)

  examine: Store['examine'] = async () => [examineDisk(this.#path)]

  now = (): number => readClock(this.#clock)

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#ended ??= new StoreUnavailable('the store is closed')
    const ends = [this.#writer, this.#checkpointer].map((thread) => {
      const end = new Promise((resolve) => thread.once('exit', resolve))
      thread.postMessage('close')
      return end
    })
    await Promise.all(ends)
    for (const settle of this.#groups.values()) settle([])
    this.#reader.close()
  }
}

const diskBytesMin = 256 * 1024 * 1024

function examineDisk(path: string): Finding {
  const { bavail, bsize } = statfsSync(dirname(path))
  const free = bavail * bsize
  const detail = `${Math.floor(free / 1024 / 1024)} MiB free beside the database`
  return { check: 'disk', ok: free >= diskBytesMin, detail }
}
