/**
 * The checkpointer thread copies the WAL into the database file beside the writer, so that no commit
 * waits for it (SQLite's own automatic checkpoint runs inside a commit). A passive checkpoint never
 * blocks, but it never catches up with a writer that does not pause, and the WAL would grow for as
 * long as the load lasts. So the writer makes the last step after a group, when few pages are left;
 * its next commit then starts the WAL over.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from '../engine/connection.ts'
import type { Port } from './answer.ts'

const everyMs = 250
/** Pages of 4 KiB: a WAL of 32 MiB. */
const restartPages = 8192
/** Pages that the writer copies in a few milliseconds. */
const lastStepPages = 512
const roundsMax = 8

/** Shared by two threads: 1 asks the writer to make the last step of a checkpoint. */
export type LastStep = Int32Array<SharedArrayBuffer>
export type CheckpointerData = { readonly path: string; readonly lastStep: LastStep }

/** Copies what it can, and asks the writer for the last step once few pages are left. */
export function copy(connection: Connection, lastStep: LastStep): void {
  if (Atomics.load(lastStep, 0) === 1) return // only one connection can checkpoint at a time
  let copied = 0
  for (let round = 0; round < roundsMax; round++) {
    const { log, checkpointed } = connection.checkpoint()
    if (log < restartPages) return
    if (log - copied < lastStepPages) break
    if (checkpointed === copied) return // a reader, such as a backup, holds it back
    copied = checkpointed
  }
  Atomics.store(lastStep, 0, 1)
}

/** Begins to copy, until the service asks it to end. */
export function serve(port: Port<'close', never>, { path, lastStep }: CheckpointerData): void {
  const connection = new Connection(path)
  const timer = setInterval(() => copy(connection, lastStep), everyMs)
  port.on('message', () => {
    clearInterval(timer)
    connection.close()
    port.close()
  })
}

if (parentPort !== null) serve(parentPort, workerData)
