/**
 * The writer thread of a service owns the only write connection of its process. Each message is a group of
 * calls, and each answer is sent after the commit of the group. After an I/O error this connection is not
 * used again: nobody knows whether the last fsync succeeded, so the process must restart from what is on
 * disk.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { findMoved, type Moved, type OpenFiles } from '../engine/open-files.ts'
import { openWriter, type Writer, type WriterData } from '../queue/write-transaction.ts'
import { type Answer, faultAnswer, type Port } from './answer.ts'
import { type Call, runGroup } from './calls.ts'
import type { LastStep } from './checkpointer.ts'

export type ThreadData = WriterData & { readonly files: OpenFiles; readonly lastStep: LastStep }

export type ToWriter = { readonly group: number; readonly calls: readonly Call[] } | 'close'
export type FromWriter = { readonly group: number; readonly answers: readonly Answer[] }

/** Outcomes are recorded even in a database that has moved, which may be put back. */
const recordsOutcomes: ReadonlySet<Call['name']> = new Set(['recordOutcome', 'renewLeases'])

function answerGroup(writer: Writer, files: OpenFiles, calls: readonly Call[]): Answer[] {
  const moved = findMoved(files)
  if (moved === null) return runGroup(writer, calls)
  if (moved.isOver) return end(writer, moved, calls)
  return calls.flatMap((call) =>
    recordsOutcomes.has(call.name) ? runGroup(writer, [call]) : [faultAnswer(moved.error)],
  )
}

/** Writes into the database what is in a WAL that was deleted: later, another one may be beside it. */
function end({ connection }: Writer, { error, isGone }: Moved, calls: readonly Call[]): Answer[] {
  try {
    if (isGone) connection.checkpointAll()
  } catch (cause) {
    const { message } = cause as Error
    const text = `${error.message}. The newest emails may be lost, because they could not be copied: ${message}`
    return calls.map(() => ({ fault: 'fatal', error: new Error(text, { cause }) }))
  }
  return calls.map(() => ({ fault: 'fatal', error }))
}

/** Begins to answer the messages of the service. */
export function serve(port: Port<ToWriter, FromWriter>, data: ThreadData): void {
  const writer = openWriter(data)
  port.on('message', (message) => {
    if (message === 'close') {
      writer.connection.close()
      port.close()
      return
    }
    port.postMessage({ group: message.group, answers: answerGroup(writer, data.files, message.calls) })
    if (Atomics.load(data.lastStep, 0) === 1) {
      writer.connection.checkpoint()
      Atomics.store(data.lastStep, 0, 0)
    }
  })
}

if (parentPort !== null) serve(parentPort, workerData)
