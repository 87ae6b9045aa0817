/**
 * Loaded into a service by `--import`: how long its event loop was held, in milliseconds of its thread's own
 * processor time. A timer alone also counts the time in which the system ran other processes.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const intervalMs = 5
const file = process.env.LOOP_HOLDS_FILE

/** The variables that make a service measure itself. */
export const measureHolds = (path: string) => ({
  NODE_OPTIONS: `--import ${import.meta.url}`,
  LOOP_HOLDS_FILE: path,
})

/** The longest hold since the last call. */
export function readLongestHold(path: string): number {
  const holds = readFileSync(path, 'utf8').trim().split('\n').map(Number)
  writeFileSync(path, '')
  return Math.max(...holds)
}

if (file !== undefined && isMainThread) {
  let last = process.threadCpuUsage()
  setInterval(() => {
    const { system, user } = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    writeFileSync(file, `${(system + user) / 1000}\n`, { flag: 'a' })
  }, intervalMs).unref()
}
