/**
 * The checkpointer thread: it copies the WAL into the database file beside the writer, so that no
 * commit has to wait for it (SQLite's own automatic checkpoint runs inside one).
 * A passive checkpoint never blocks. Where a steady load keeps it from catching up, so that the WAL
 * cannot start over, the few pages that a passive one left are copied under the writer's lock.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { Database, faultKind } from './database.ts'

const everyMs = 250
/** Of 4 KiB each: a WAL of 32 MiB. */
const restartPages = 8192

/** Pages in the WAL, and how many of them are in the database file by now. */
type Progress = { readonly log: number; readonly checkpointed: number }

const checkpoint = (database: Database, mode: 'passive' | 'restart'): Progress =>
  database.connection.prepare(`pragma wal_checkpoint(${mode})`).get() as Progress

function copy(database: Database): void {
  try {
    const { log, checkpointed } = checkpoint(database, 'passive')
    if (log > restartPages && checkpointed < log) checkpoint(database, 'restart')
  } catch (error) {
    if (faultKind(error) !== 'passing') throw error
  }
}

function run(): void {
  const port = parentPort
  if (port === null) return
  const { path } = workerData as { path: string }
  const database = new Database(path)
  const timer = setInterval(() => copy(database), everyMs)
  port.once('message', () => {
    clearInterval(timer)
    database.close()
    port.close()
  })
}

run()
