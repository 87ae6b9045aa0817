/**
 * The writer thread: it owns the only write connection. Each message is a group of calls, each
 * group one durable transaction, each answer sent after its commit.
 *
 * Where a group fails for a passing reason (disk full, locked) all its calls fail; where one call
 * is at fault, the calls are run again one by one, so that it fails alone. After an I/O error
 * nothing is tried again on this connection: whether the last fsync held cannot be known, and the
 * process must start anew from what is on disk.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type KeyRing, makeKeyedHash } from '../../crypto/key-ring.ts'
import { type ClockOffset, readClock } from '../../shared/clock.ts'
import { Connection, faultKind } from '../connection.ts'
import type { LastStep } from './checkpointer.ts'
import { type Call, perform } from './operations.ts'
import { type Writer, WriteTransaction } from './write-transaction.ts'

export type WriterData = {
  readonly path: string
  readonly ring: KeyRing
  readonly hashKey: Uint8Array
  readonly queueMax: number
  readonly clock: ClockOffset
  readonly lastStep: LastStep
}

/** The answer to one call; `fault` tells what an error means. */
export type Answered =
  | { readonly value: unknown }
  | { readonly fault: 'temporary' | 'fatal' | 'bug'; readonly message: string }

export type ToWriter = { readonly group: number; readonly calls: readonly Call[] } | 'close'
export type FromWriter = { readonly group: number; readonly answers: readonly Answered[] }

function openWriter(data: WriterData): Writer {
  return {
    database: new Connection(data.path),
    ring: data.ring,
    keyedHash: makeKeyedHash(Buffer.from(data.hashKey)),
    queueMax: data.queueMax,
    nowMs: () => readClock(data.clock),
    apps: new Map(),
    keys: new Map(),
    cursors: { app: '', suspectLast: false, rate: null, idempotency: null, passBegunAt: 0 },
    dataVersion: -1,
  }
}

function runGroup(writer: Writer, calls: readonly Call[]): Answered[] {
  try {
    return writer.database.transaction(() => {
      const tx = new WriteTransaction(writer)
      const answers = calls.map((call) => ({ value: perform(tx, call) }))
      tx.flush()
      return answers
    })
  } catch (error) {
    writer.dataVersion = -1 // the caches may hold what was rolled back
    const fault = faultKind(error)
    if (fault === 'bug' && calls.length > 1) return calls.flatMap((call) => runGroup(writer, [call]))
    const message = error instanceof Error ? error.message : String(error)
    return calls.map(() => ({ fault, message }))
  }
}

function serve(): void {
  const port = parentPort
  if (port === null) return
  const data = workerData as WriterData
  const writer = openWriter(data)
  port.on('message', (message: ToWriter) => {
    if (message === 'close') {
      writer.database.close()
      port.close()
      return
    }
    const answer: FromWriter = { group: message.group, answers: runGroup(writer, message.calls) }
    port.postMessage(answer)
    if (Atomics.load(data.lastStep, 0) === 1) {
      writer.database.checkpoint()
      Atomics.store(data.lastStep, 0, 0)
    }
  })
}

serve()
