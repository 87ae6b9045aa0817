/** The store's side of its threads. Each starts with its first call at the latest, and is asked to close. */
import { extname } from 'node:path'
import { MessageChannel, Worker } from 'node:worker_threads'
import { GroupedCalls, type OnGroup, type Settled } from '../../shared/grouped-calls.ts'
import { StoreUnavailable } from '../../store.ts'
import { faultKind } from '../engine/connection.ts'
import { type Answer, settle } from './answer.ts'
import type { Call } from './calls.ts'
import type { CheckpointerData } from './checkpointer.ts'
import type { FromReader, ReaderData, ToReader } from './reader.ts'
import type { ReadName } from './reads.ts'
import { type FromWriter, serve, type ToWriter, type WriterData } from './writer.ts'

const groupMax = 256
const groupsInFlight = 2
/** A service that starts has nothing to copy yet, and needs the processors. */
const checkpointerAfterMs = 250

const closed = (cause?: Error) => new StoreUnavailable('the store is closed', { cause })

type Messages = { postMessage(message: unknown): void }

/** A thread that was started. `exit` settles when it has ended, however it ends. */
type Started<Thread = Worker> = { readonly thread: Thread; readonly exit: Promise<unknown> }

/** The built package has `.js` files, a checkout `.ts` files. */
const extension = extname(import.meta.filename)

function start(name: 'writer' | 'reader' | 'checkpointer', workerData: unknown): Started {
  const thread = new Worker(new URL(`./${name}${extension}`, import.meta.url), { workerData })
  return { thread, exit: new Promise((resolve) => thread.once('exit', resolve)) }
}

function end({ thread, exit }: Started<Messages>): Promise<unknown> {
  thread.postMessage('close')
  return exit
}

export type WriterEvents = {
  readonly onFatal: (error: Error) => void
  readonly onGroup?: OnGroup | undefined
}

/**
 * The writer thread with the checkpointer beside it; in a command, the writer alone on the main thread.
 * Calls go in groups, each one durable transaction.
 */
export class WriterThread {
  readonly #data: WriterData
  readonly #isService: boolean
  readonly #onFatal: (error: Error) => void
  readonly #calls: GroupedCalls<Call>
  readonly #groups = new Map<number, PromiseWithResolvers<readonly Answer[]>>()
  #writer: Started<Messages> | null = null
  #checkpointer: Started | null = null
  #checkpointerTimer: NodeJS.Timeout | undefined
  #nextGroup = 0
  #ended: Error | null = null
  #closing: Promise<void> | null = null

  constructor(data: Omit<WriterData, 'lastStep'>, isService: boolean, { onFatal, onGroup }: WriterEvents) {
    const lastStep = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    this.#data = { ...data, lastStep }
    this.#isService = isService
    this.#onFatal = onFatal
    this.#calls = new GroupedCalls((calls) => this.#runGroup(calls), {
      groupMax,
      inFlightMax: groupsInFlight,
      onGroup,
    })
  }

  call(call: Call, deadlineMs?: number): Promise<unknown> {
    return this.#calls.submit(call, deadlineMs)
  }

  start(): Messages {
    this.#writer ??= this.#isService ? this.#startThread() : this.#startHere()
    return this.#writer.thread
  }

  #startThread(): Started {
    const writer = start('writer', this.#data)
    writer.thread.on('message', (message: FromWriter) => this.#settle(message))
    this.#failWith(writer)
    this.#checkpointerTimer = setTimeout(() => {
      const { path, lastStep } = this.#data
      this.#checkpointer = start('checkpointer', { path, lastStep } satisfies CheckpointerData)
      this.#failWith(this.#checkpointer)
    }, checkpointerAfterMs).unref()
    return writer
  }

  /** To start the threads takes a command 95 ms of processor time, as long as all the rest of it. */
  #startHere(): Started<Messages> {
    const { port1, port2 } = new MessageChannel()
    try {
      serve(port2, this.#data)
    } catch (error) {
      port1.close()
      throw faultKind(error) === 'bug' ? error : new StoreUnavailable((error as Error).message, { cause: error })
    }
    port1.on('message', (message: FromWriter) => this.#settle(message))
    return { thread: port1, exit: new Promise((resolve) => port1.once('close', resolve)) }
  }

  #failWith({ thread }: Started): void {
    thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
  }

  #settle({ group, answers }: FromWriter): void {
    this.#groups.get(group)?.resolve(answers)
    this.#groups.delete(group)
  }

  async #runGroup(calls: readonly Call[]): Promise<Settled[]> {
    if (this.#ended !== null) throw closed(this.#ended)
    const writer = this.start()
    const group = this.#nextGroup++
    const answer = Promise.withResolvers<readonly Answer[]>()
    this.#groups.set(group, answer)
    writer.postMessage({ group, calls } satisfies ToWriter)
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
    clearTimeout(this.#checkpointerTimer)
    // The writer last and alone: SQLite then copies the rest of the WAL and removes it.
    if (this.#checkpointer !== null) await end(this.#checkpointer)
    if (this.#writer !== null) await end(this.#writer)
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
