/** The store's side of its threads. The reader starts with its first call. Each is asked to close. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { GroupedCalls, type OnGroup, type Settled } from '../../shared/grouped-calls.ts'
import { StoreUnavailable } from '../../store.ts'
import { type Answer, closed, settle } from './answer.ts'
import type { Call } from './calls.ts'
import type { CheckpointerData } from './checkpointer.ts'
import type { FromReader, ReaderData, ToReader } from './reader.ts'
import type { ReadName } from './reads.ts'
import type { FromWriter, ThreadData, ToWriter } from './writer.ts'

const groupMax = 256
const groupsInFlight = 2

/** A thread that was started. `exit` settles when it has ended, however it ends. */
type Started = { readonly thread: Worker; readonly exit: Promise<unknown> }

/** The built package has `.js` files, a checkout `.ts` files. */
const extension = extname(import.meta.filename)

function start(name: 'writer' | 'reader' | 'checkpointer', workerData: unknown): Started {
  const thread = new Worker(new URL(`./${name}${extension}`, import.meta.url), { workerData })
  return { thread, exit: new Promise((resolve) => thread.once('exit', resolve)) }
}

function end({ thread, exit }: Started): Promise<unknown> {
  thread.postMessage('close')
  return exit
}

export type WriterEvents = {
  readonly onFatal: (error: Error) => void
  readonly onGroup?: OnGroup | undefined
}

/** The writer thread, or the writer of a command. */
export type StoreWriter = Pick<WriterThread, 'call'>

/** The writer thread with the checkpointer beside it. Calls go in groups, each one durable transaction. */
export class WriterThread {
  readonly #onFatal: (error: Error) => void
  readonly #calls: GroupedCalls<Call>
  readonly #groups = new Map<number, PromiseWithResolvers<readonly Answer[]>>()
  readonly #threads: readonly [writer: Started, checkpointer: Started]
  #nextGroup = 0
  #ended: Error | null = null
  #closing: Promise<void> | null = null

  constructor(data: Omit<ThreadData, 'lastStep'>, { onFatal, onGroup }: WriterEvents) {
    this.#onFatal = onFatal
    this.#calls = new GroupedCalls((calls) => this.#runGroup(calls), {
      groupMax,
      inFlightMax: groupsInFlight,
      onGroup,
    })
    this.#threads = this.#start(data)
  }

  call(call: Call, deadlineMs?: number): Promise<unknown> {
    return this.#calls.submit(call, deadlineMs)
  }

  #start(data: Omit<ThreadData, 'lastStep'>): [writer: Started, checkpointer: Started] {
    const lastStep = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const writer = start('writer', { ...data, lastStep } satisfies ThreadData)
    const checkpointer = start('checkpointer', { path: data.path, lastStep } satisfies CheckpointerData)
    writer.thread.on('message', ({ group, answers }: FromWriter) => {
      this.#groups.get(group)?.resolve(answers)
      this.#groups.delete(group)
    })
    for (const { thread } of [writer, checkpointer]) {
      thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    }
    return [writer, checkpointer]
  }

  async #runGroup(calls: readonly Call[]): Promise<Settled[]> {
    if (this.#ended !== null) throw closed(this.#ended)
    const group = this.#nextGroup++
    const answer = Promise.withResolvers<readonly Answer[]>()
    this.#groups.set(group, answer)
    this.#threads[0].thread.postMessage({ group, calls } satisfies ToWriter)
    const answers = await answer.promise
    const fatal = answers.find((answer) => 'fault' in answer && answer.fault === 'fatal')
    if (fatal !== undefined && 'error' in fatal) this.#fail(fatal.error)
    return answers.map(settle)
  }

  #fail(error: Error): void {
    if (this.#ended !== null) return
    this.#ended = error
    this.#abandonGroups(error)
    this.#onFatal(error)
  }

  #abandonGroups(cause?: Error): void {
    for (const { reject } of this.#groups.values()) reject(closed(cause))
    this.#groups.clear()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#ended ??= closed()
    const [writer, checkpointer] = this.#threads
    // The writer last and alone: SQLite then copies the rest of the WAL and removes it.
    await end(checkpointer)
    await end(writer)
    this.#abandonGroups()
  }
}

/** The reader thread. Calls are answered in order. After a failure the next call starts another thread. */
export class ReaderThread {
  readonly #data: ReaderData
  readonly #calls = new Map<number, (settled: Settled) => void>()
  #reader: Started | null = null
  #nextId = 0
  #closed = false

  constructor(data: ReaderData) {
    this.#data = data
  }

  async call(call: Call<ReadName>): Promise<unknown> {
    if (this.#closed) throw closed()
    this.#reader ??= this.#start()
    const { thread } = this.#reader
    const id = this.#nextId++
    const settled = await new Promise<Settled>((resolve) => {
      this.#calls.set(id, resolve)
      thread.postMessage({ id, call } satisfies ToReader)
    })
    if ('error' in settled) throw settled.error
    return settled.value
  }

  #start(): Started {
    const started = start('reader', this.#data)
    started.thread.on('message', ({ id, answer }: FromReader) => {
      this.#calls.get(id)?.(settle(answer))
      this.#calls.delete(id)
    })
    started.thread.on('error', (cause) => {
      this.#reader = null
      this.#abandon(new StoreUnavailable('the database cannot be read', { cause }))
    })
    return started
  }

  #abandon(error: Error): void {
    for (const resolve of this.#calls.values()) resolve({ error })
    this.#calls.clear()
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#reader !== null) await end(this.#reader)
    this.#abandon(closed())
  }
}
