/**
 * A writer, and how it runs a group of calls: as one durable transaction. If a group fails for a temporary
 * reason (disk full, locked), all its calls fail. If one call is at fault, the calls are run again one by
 * one, so that only that call fails.
 */
import { type KeyRing, makeKeyedHash } from '../../crypto/key-ring.ts'
import { type ClockOffset, readClock } from '../../shared/clock.ts'
import { Connection, faultKind } from '../engine/connection.ts'
import { newWriter, type Writer, WriteTransaction } from '../queue/write-transaction.ts'
import { type Answer, faultAnswer } from './answer.ts'
import { type Call, runCall } from './calls.ts'

export type WriterData = {
  readonly path: string
  readonly ring: KeyRing
  readonly lacksKeys: boolean
  readonly hashKey: Uint8Array
  readonly queueMax: number
  readonly clock: ClockOffset
}

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
