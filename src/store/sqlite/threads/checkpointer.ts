/**
 * The checkpointer thread: it copies the WAL into the database file beside the writer, so that no
 * commit has to wait for it (SQLite's own automatic checkpoint runs inside one).
 * A passive checkpoint never blocks, and never catches up with a writer that does not pause: the
 * WAL would grow for as long as the load lasts. So the writer makes the last step itself, after a
 * group, when only few pages are left; its next commit then starts the WAL over.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from '../connection.ts'

const everyMs = 250
/** Of 4 KiB each: a WAL of 32 MiB. */
const restartPages = 8192
/** What the writer copies in a few milliseconds. */
const lastStepPages = 512
const roundsMax = 8

/** Shared between two threads: 1 where the writer is to make the last step of a checkpoint. */
export type LastStep = Int32Array<SharedArrayBuffer>
export type CheckpointerData = { readonly path: string; readonly lastStep: LastStep }

/** One go: copies, and asks the writer for the last step where only few pages are left. */
export function copy(database: Connection, lastStep: LastStep): void {
  if (Atomics.load(lastStep, 0) === 1) return // only one connection can checkpoint at a time
  let copied = 0
  for (let round = 0; round < roundsMax; round++) {
    const { log, checkpointed } = database.checkpoint()
    if (log < restartPages) return
    if (log - copied < lastStepPages) break
    if (checkpointed === copied) return // a reader, say a backup, holds it back: nothing to do but wait
    copied = checkpointed
  }
  Atomics.store(lastStep, 0, 1)
}

function run(): void {
  const port = parentPort
  if (port === null) return
  const { path, lastStep } = workerData as CheckpointerData
  const database = new Connection(path)
  const timer = setInterval(() => copy(database, lastStep), everyMs)
  port.once('message', () => {
    clearInterval(timer)
    database.close()
    port.close()
  })
}

run()
