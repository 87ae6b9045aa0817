/** The database file: its size, the space that is left, and whether a process sends from it. */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { describeBytes } from '../../../domain/counts.ts'
import { describeDuration } from '../../../domain/duration.ts'
import type { QueueMeasures } from '../../operator-store.ts'
import { type DatabaseDescription, type Finding, StoreUnavailable } from '../../store.ts'
import { WorkerLock } from './worker-lock.ts'

/** Mail that is late by more may wait for a process that hangs. */
const hangsAfterMs = 60_000

/** Takes the lock for a moment, if nobody has it. */
export function examineWorker(
  path: string,
  { depth, late }: Pick<QueueMeasures, 'depth' | 'late'>,
  nowMs: number,
): Finding {
  const check = 'worker'
  const lock = new WorkerLock(path)
  try {
    if (lock.tryTake() === 'not_held') {
      const lateMs = Math.max(0, ...late.map(({ since }) => nowMs - since))
      const hint = `, but mail has waited for ${describeDuration(lateMs)}. It retries a relay that was down within 36 s. If the relays answer and no mail moves for longer than that, it hangs: kill it and start it again`
      return { check, ok: true, detail: `a process is sending${lateMs > hangsAfterMs ? hint : ''}` }
    }
    const none = 'no process is sending: start one with the worker role'
    return depth === 0
      ? { check, ok: true, detail: none }
      : { check, ok: false, detail: `${none}; ${depth} emails wait` }
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message }
  } finally {
    lock.release()
  }
}

const diskBytesMin = 256 * 1024 * 1024

export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

/** A WAL that begins anew takes some writes on a full disk, and soon no more. */
const writableBytesMin = 1024 * 1024

export function requireSpace(path: string): void {
  const free = freeBytes(path)
  if (free < writableBytesMin)
    throw new StoreUnavailable(`the disk of the database is full: ${describeBytes(free)} free`)
}

export function examineDisk(path: string): Finding {
  const free = freeBytes(path)
  const detail = `${describeBytes(free)} free on the database's disk`
  return { check: 'disk', ok: free >= diskBytesMin, detail }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

export const describeDatabase = (path: string, schema: number): DatabaseDescription => ({
  ...{ kind: 'SQLite', version: process.versions.sqlite ?? '', schema },
  bytes: sizeOf(path),
  logBytes: sizeOf(`${path}-wal`),
  freeBytes: freeBytes(path),
})
