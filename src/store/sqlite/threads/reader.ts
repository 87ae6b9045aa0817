/** The reader thread: lists and summaries, so that a long one never delays the event loop of the service. */
import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from '../connection.ts'
import { type ListRead, type Reader, readerOf, readList } from '../reads.ts'
import { type Answer, faultAnswer } from './answer.ts'
import type { Call } from './operations.ts'

export type ReaderData = { readonly path: string }
export type ToReader = { readonly id: number; readonly call: Call<ListRead> } | 'close'
export type FromReader = { readonly id: number; readonly answer: Answer }

function read(reader: Reader, { name, args }: Call<ListRead>): Answer {
  try {
    return { value: readList(reader, name, args) }
  } catch (error) {
    return faultAnswer(error)
  }
}

function serve(): void {
  const port = parentPort
  if (port === null) return
  const connection = new Connection((workerData as ReaderData).path, { readOnly: true })
  const reader = readerOf(connection)
  port.on('message', (message: ToReader) => {
    if (message === 'close') {
      connection.close()
      port.close()
      return
    }
    port.postMessage({ id: message.id, answer: read(reader, message.call) } satisfies FromReader)
  })
}

serve()
