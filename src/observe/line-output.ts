/**
 * Standard output or standard error of a service. A full disk, or a reader that has stopped, must not stop
 * the service: no write waits. Lines that cannot be written now wait in a bounded buffer; further ones are
 * lost, and counted. Node's own streams would not do: one on a file ends with its first error, and one on a
 * terminal waits.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs'

/** Some two hundred lines: a few seconds of a busy service. */
const waitingBytesMax = 64 * 1024
const retryMs = 500

/** Why lines cannot be written. */
export type OutputFault = { readonly code: string; readonly message: string }

export class LineOutput {
  readonly #descriptor: number
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined
  #fault: OutputFault | null = null
  #lost = 0
  readonly #listeners: ((fault: OutputFault | null) => void)[] = []

  constructor(descriptor: 1 | 2) {
    this.#descriptor = openWithoutWaiting(descriptor)
  }

  /** How many lines were lost since the start. */
  get lost(): number {
    return this.#lost
  }

  /**
   * `listener` is called when lines can no longer be written, and with null when all that waited have been.
   */
  subscribe(listener: (fault: OutputFault | null) => void): void {
    this.#listeners.push(listener)
    if (this.#fault !== null) listener(this.#fault)
  }

  /** @param text whole lines */
  readonly write = (text: string): void => {
    const bytes = Buffer.from(text)
    if (this.#waitingBytes + bytes.length > waitingBytesMax) {
      this.#lost += 1
      this.#note({ code: 'EAGAIN', message: 'its reader has stopped reading' })
      return
    }
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#timer === undefined) this.#drain()
  }

  /**
   * Writes what the kernel takes now. The rest of a line that is half written stays the first of the buffer.
   */
  #drain(): void {
    try {
      for (let [bytes] = this.#waiting; bytes !== undefined; [bytes] = this.#waiting) {
        const written = writeSync(this.#descriptor, bytes)
        this.#waitingBytes -= written
        if (written < bytes.length) this.#waiting[0] = bytes.subarray(written)
        else this.#waiting.shift()
      }
      this.#note(null)
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      // A pipe that is full for a moment is no fault.
      if (code !== 'EAGAIN') this.#note({ code, message })
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.#drain()
      }, retryMs).unref()
    }
  }

  #note(fault: OutputFault | null): void {
    if ((this.#fault === null) === (fault === null)) return
    this.#fault = fault
    for (const listener of this.#listeners) listener(fault)
  }
}

/**
 * A descriptor whose writes never wait. A file's never do; the shared one of a pipe is left as it is, if
 * possible.
 */
function openWithoutWaiting(descriptor: 1 | 2): number {
  if (fstatSync(descriptor).isFile()) return descriptor
  try {
    const { O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY)
  } catch {
    // A socket, another user's pipe, or no Linux: Node sets its descriptor so when it makes the stream.
    void (descriptor === 1 ? process.stdout : process.stderr)
    return descriptor
  }
}
