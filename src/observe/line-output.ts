/**
 * Standard output or standard error of a service. A full disk, or a reader that has stopped, must not stop
 * the service: no write waits. Lines that cannot be written now wait in a bounded buffer; further ones are
 * lost, and counted. Node's own streams would not do: one on a file ends with its first error, and one on a
 * terminal waits.
 */
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

/** Some two hundred lines: a few seconds of a busy service. */
const waitingBytesMax = 64 * 1024
const retryMs = 500

/**
 * Called with the reason when lines can no longer be written, and with null when all that waited have been.
 */
type Listener = (reason: string | null) => void

export class LineOutput {
  readonly #descriptor: number
  /** Whether a write to it may wait: then a thread of Node's makes it. */
  readonly #mayWait: boolean
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  /** A write is in progress, or is tried again later. */
  #isBusy = false
  #reason: string | null = null
  #lost = 0
  readonly #listeners: Listener[] = []

  constructor(descriptor: 1 | 2) {
    const opened = openWithoutWaiting(descriptor)
    this.#descriptor = opened ?? descriptor
    this.#mayWait = opened === null && isatty(descriptor)
  }

  /** How many lines were lost since the start. */
  get lost(): number {
    return this.#lost
  }

  subscribe(listener: Listener): void {
    this.#listeners.push(listener)
    if (this.#reason !== null) listener(this.#reason)
  }

  /** @param text whole lines */
  readonly write = (text: string): void => {
    const bytes = Buffer.from(text)
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes.length > waitingBytesMax) {
      this.#lost += 1
      this.#note('its reader has stopped reading')
      return
    }
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (!this.#isBusy) this.#drain()
  }

  /**
   * Writes what can be written now. The rest of a line that is half written stays the first of the buffer.
   */
  #drain(): void {
    this.#isBusy = true
    try {
      for (let [bytes] = this.#waiting; bytes !== undefined; [bytes] = this.#waiting) {
        if (this.#mayWait) {
          this.#writeInThread(bytes)
          return
        }
        this.#noteWritten(bytes, writeSync(this.#descriptor, bytes))
      }
      this.#isBusy = false
      this.#note(null)
    } catch (error) {
      this.#tryLater(error as NodeJS.ErrnoException)
    }
  }

  #writeInThread(bytes: Buffer): void {
    write(this.#descriptor, bytes, (error, written) => {
      if (error !== null) return this.#tryLater(error)
      this.#noteWritten(bytes, written)
      this.#drain()
    })
  }

  #noteWritten(bytes: Buffer, written: number): void {
    this.#waitingBytes -= written
    if (written < bytes.length) this.#waiting[0] = bytes.subarray(written)
    else this.#waiting.shift()
  }

  #tryLater({ code, message }: NodeJS.ErrnoException): void {
    setTimeout(() => this.#drain(), retryMs).unref()
    if (code !== 'EAGAIN') this.#note(message) // a pipe that is full for a moment is no fault
  }

  #note(reason: string | null): void {
    if ((this.#reason === null) === (reason === null)) return
    this.#reason = reason
    for (const listener of this.#listeners) listener(reason)
  }
}

/**
 * A descriptor whose writes never wait; null if `descriptor` itself is the only one. A file's never do. The
 * one that a pipe's other users share is left as it is, if possible.
 */
function openWithoutWaiting(descriptor: 1 | 2): number | null {
  if (fstatSync(descriptor).isFile()) return descriptor
  try {
    const { O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY)
  } catch {
    // A socket, another user's pipe or terminal, or no Linux. But for a terminal, Node makes its descriptor
    // so when it makes the stream.
    void (descriptor === 1 ? process.stdout : process.stderr)
    return null
  }
}
