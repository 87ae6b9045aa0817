/** The reader thread: lists and summaries, so that a long one never delays the event loop of the service. */
import { parentPort, workerData } from 'node:worker_threads'
import { type ClockOffset, readClock } from '../../shared/clock.ts'
import { Connection } from '../engine/connection.ts'
import type { ScriptTarget } from '../engine/run-script.ts'
import { type Answer, faultAnswer, type Port } from './answer.ts'
import type { Call } from './calls.ts'
import { performRead, type ReadName } from './reads.ts'

export type ReaderData = { readonly path: string; readonly clock: ClockOffset }
export type ToReader = { readonly id: number; readonly call: Call<ReadName> } | 'close'
export type FromReader = { readonly id: number; readonly answer: Answer }

function read(target: ScriptTarget, call: Call<ReadName>): Answer {
  try {
    return { value: performRead(target, call) }
  } catch (error) {
    return faultAnswer(error)
  }
}

/** Begins to answer the messages of the service. */
export function serve(port: Port<ToReader, FromReader>, { path, clock }: ReaderData): void {
  const connection = new Connection(path, { readOnly: true })
  const sql = (text: string) => connection.sql(text)
  port.on('message', (message) => {
    if (message === 'close') {
      connection.close()
      port.close()
      return
    }
    const answer = read({ sql, nowMs: readClock(clock) }, message.call)
    port.postMessage({ id: message.id, answer })
  })
}

if (parentPort !== null) serve(parentPort, workerData)
