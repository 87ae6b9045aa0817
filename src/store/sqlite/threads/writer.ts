/**
 * The writer owns the only write connection. It is a thread of a service; a command has it on its main
 * thread (`command-writer.ts`). Each message is a group of calls, each group one durable transaction, and
 * each answer is sent after its commit.
 *
 * If a group fails for a temporary reason (disk full, locked), all its calls fail. If one call is at
 * fault, the calls are run again one by one, so that only that call fails. After an I/O error this
 * connection is not used again: nobody knows whether the last fsync succeeded, so the process must
 * restart from what is on disk.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type KeyRing, makeKeyedHash } from '../../crypto/key-ring.ts'
import { type ClockOffset, readClock } from '../../shared/clock.ts'
import { Connection, faultKind } from '../engine/connection.ts'
import { findMoved, type Moved, type OpenFiles } from '../engine/open-files.ts'
import { newWriter, type Writer, WriteTransaction } from '../queue/write-transaction.ts'
import { type Answer, faultAnswer, type Port } from './answer.ts'
import { type Call, runCall } from './calls.ts'
import type { LastStep } from './checkpointer.ts'

export type WriterData = {
  readonly path: string
  readonly ring: KeyRing
  readonly lacksKeys: boolean
  readonly hashKey: Uint8Array
  readonly queueMax: number
  readonly clock: ClockOffset
}

export type ThreadData = WriterData & { readonly files: OpenFiles; readonly lastStep: LastStep }

export type ToWriter = { readonly group: number; readonly calls: readonly Call[] } | 'close'
export type FromWriter = { readonly group: number; readonly answers: readonly Answer[] }

/** Outcomes are recorded even in a database that has moved, which may be put back. */
const recordsOutcomes: ReadonlySet<Call['name']> = new Set(['recordOutcome', 'renewLeases'])

export function openWriter(data: WriterData): Writer {
  return newWriter({
    connection: new Connection(data.path),
    ring: data.ring,
    lacksKeys: data.lacksKeys,
    keyedHash: makeKeyedHash(Buffer.from(data.hashKey)),
    queueMax: data.queueMax,
    nowMs: () => readClock(data.clock),
  })
}

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

export function runGroup(writer: Writer, calls: readonly Call[]): Answer[] {
  let done: { tx: WriteTransaction; answers: Answer[] }
  try {
    done = writer.connection.transaction(() => {
      const tx = new WriteTransaction(writer)
      const answers = calls.map((call) => ({ value: runCall(tx, call) }))
      tx.flush()
      return { tx, answers }
    })
  } catch (error) {
    writer.dataVersion = -1 // the caches may hold changes that were rolled back
    if (faultKind(error) === 'bug' && calls.length > 1) return calls.flatMap((call) => runGroup(writer, [call]))
    return calls.map(() => faultAnswer(error))
  }
  done.tx.committed() // not within the try: what is committed must not run again
  return done.answers
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
