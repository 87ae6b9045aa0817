/**
 * The writer of a command, on its main thread: starting the threads of a service would take as long as the
 * rest of the command. Each call is a durable transaction. The thread is blocked while another process has
 * the lock, for up to five seconds.
 */
import { openWriter, type Writer, type WriterData } from './queue/write-transaction.ts'
import { type Answer, closed, faultAnswer, settle } from './threads/answer.ts'
import { type Call, runGroup } from './threads/calls.ts'

/** A command that makes thousands of calls has no checkpointer beside it. */
const checkpointEvery = 100

export class CommandWriter {
  readonly #data: WriterData
  readonly #onFatal: (error: Error) => void
  #writer: Writer | null = null
  #calls = 0
  #ended: Error | null = null

  constructor(data: WriterData, onFatal: (error: Error) => void) {
    this.#data = data
    this.#onFatal = onFatal
  }

  async call(call: Call): Promise<unknown> {
    if (this.#ended !== null) throw closed(this.#ended)
    const answer = this.#answer(call)
    if ('fault' in answer && answer.fault === 'fatal') {
      this.#ended = answer.error
      this.#onFatal(answer.error)
    }
    const settled = settle(answer)
    if ('error' in settled) throw settled.error
    return settled.value
  }

  #answer(call: Call): Answer {
    try {
      this.#writer ??= openWriter(this.#data)
      const [answer] = runGroup(this.#writer, [call])
      this.#calls += 1
      if (this.#calls % checkpointEvery === 0) this.#writer.connection.checkpoint()
      return answer as Answer
    } catch (error) {
      return faultAnswer(error)
    }
  }

  async close(): Promise<void> {
    this.#ended ??= closed()
    this.#writer?.connection.close()
    this.#writer = null
  }
}
