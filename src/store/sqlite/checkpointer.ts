/**
 * The checkpointer thread: it copies the WAL into the database file beside the writer, so that no
 * commit has to wait for it (SQLite's own automatic checkpoint stalls commits by 18 to 35 ms).
 * A passive checkpoint never blocks; where readers or a steady load keep the WAL from starting
 * over, past `restartBytes` it waits for the writer's lock and truncates.
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { Database, faultKind } from './database.ts'

const everyMs = 250
const passiveBytes = 4 * 1024 * 1024
const restartBytes = 256 * 1024 * 1024

function walBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

function checkpoint(database: Database, path: string, done: { bytes: number }): void {
  const bytes = walBytes(path)
  if (bytes < passiveBytes || bytes === done.bytes) return
  try {
    database.connection.exec(`pragma wal_checkpoint(${bytes > restartBytes ? 'truncate' : 'passive'})`)
    done.bytes = walBytes(path)
  } catch (error) {
    if (faultKind(error) !== 'passing') throw error
  }
}

function run(): void {
  const port = parentPort
  if (port === null) return
  const { path } = workerData as { path: string }
  const database = new Database(path)
  const done = { bytes: 0 }
  const timer = setInterval(() => checkpoint(database, path, done), everyMs)
  port.once('message', () => {
    clearInterval(timer)
    database.close()
    port.close()
  })
}

run()
