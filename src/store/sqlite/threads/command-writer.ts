/**
 * The writer of a command, on its main thread: starting the threads of a service would take as long as the
 * rest of the command. Each call is a durable transaction.
 */
import { StoreUnavailable } from '../../store.ts'
import type { Writer } from '../queue/write-transaction.ts'
import { type Answer, faultAnswer, settle } from './answer.ts'
import type { Call } from './calls.ts'
import { openWriter, runGroup, type WriterData } from './writer.ts'

export class CommandWriter {
  readonly #data: WriterData
  readonly #onFatal: (error: Error) => void
  #writer: Writer | null = null
  #closed = false

  constructor(data: WriterData, onFatal: (error: Error) => void) {
    this.#data = data
    this.#onFatal = onFatal
  }

  async call(call: Call): Promise<unknown> {
    if (this.#closed) throw new StoreUnavailable('the store is closed')
    const answer = this.#answer(call)
    if ('fault' in answer && answer.fault === 'fatal') this.#onFatal(answer.error)
    const settled = settle(answer)
    if ('error' in settled) throw settled.error
    return settled.value
  }

  #answer(call: Call): Answer {
    try {
      this.#writer ??= openWriter(this.#data)
      return runGroup(this.#writer, [call])[0] as Answer
    } catch (error) {
      return faultAnswer(error)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#writer?.connection.close()
    this.#writer = null
  }
}
