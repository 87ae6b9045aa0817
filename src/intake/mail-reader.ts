/**
 * Reads messages in a thread of its own. A MIME library takes seconds for some messages of a few KB, which
 * no bound on their size or parts would find: one that takes too long is refused, and its thread is ended.
 * Apps take turns.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { SubmittedMail } from '../domain/auth-hooks/smtp/mail-system.ts'
import { type Parsed, refuser } from '../domain/parsed.ts'

/** Usual messages take a millisecond. It counts from when the thread has begun. */
const readMs = 2000
/** A thread without work is ended after this time. */
const idleMs = 60_000
const heapMb = 128

const tooSlow = refuser('message')('too_slow', 'The message takes too long to read. Its parts or its HTML are unusual.')

/** The built package has `.js` files, a checkout `.ts` files. */
const file = new URL(`./read-mail-thread${extname(import.meta.filename)}`, import.meta.url)

type Task = {
  readonly bytes: Uint8Array
  readonly to: string | null
  readonly settle: (mail: Parsed<SubmittedMail>) => void
}

class MailReader {
  /** The tasks of each app that has some, in the order in which it is their turn. */
  readonly #waiting = new Map<string, Task[]>()
  #thread: Worker | null = null
  #current: Task | null = null
  #timer: NodeJS.Timeout | undefined

  /** @param to the recipient that the client named; null for the first one of the header */
  read(app: string, bytes: Uint8Array, to: string | null): Promise<Parsed<SubmittedMail>> {
    return new Promise((settle) => {
      this.#waiting.set(app, [...(this.#waiting.get(app) ?? []), { bytes, to, settle }])
      if (this.#current === null) this.#next()
    })
  }

  #next(): void {
    clearTimeout(this.#timer)
    const [turn] = this.#waiting
    if (turn === undefined) {
      this.#rest()
      return
    }
    const [app, [task, ...others]] = turn
    this.#waiting.delete(app)
    if (others.length > 0) this.#waiting.set(app, others)
    if (task === undefined) return
    this.#current = task
    this.#thread ??= this.#start()
    this.#thread.ref()
    this.#thread.postMessage({ bytes: task.bytes, to: task.to })
  }

  #start(): Worker {
    const thread = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: heapMb } })
    thread.on('message', (answer: 'begun' | Parsed<SubmittedMail>) => {
      if (this.#thread !== thread) return // an ended thread answers a message that was refused
      if (answer === 'begun') this.#timer = this.#limitTime(this.#current)
      else this.#settle(answer)
    })
    thread.on('error', () => {}) // it has no memory left
    thread.on('exit', () => {
      if (this.#thread === thread) this.#end(tooSlow)
    })
    return thread
  }

  /** While this process is held, an answer may arrive before the time is over and be seen after it. */
  #limitTime(task: Task | null): NodeJS.Timeout {
    const end = () => {
      if (this.#current === task) this.#end(tooSlow)
    }
    return setTimeout(() => setImmediate(end), readMs)
  }

  #settle(mail: Parsed<SubmittedMail>): void {
    const task = this.#current
    this.#current = null
    task?.settle(mail)
    this.#next()
  }

  #end(answer: Parsed<SubmittedMail>): void {
    const thread = this.#thread
    this.#thread = null
    void thread?.terminate()
    if (this.#current !== null) this.#settle(answer)
  }

  /** Nothing keeps the process for a thread without work. */
  #rest(): void {
    this.#thread?.unref()
    this.#timer = setTimeout(() => this.#end(tooSlow), idleMs).unref()
  }
}

/** That of this process. */
export const mailReader = new MailReader()
