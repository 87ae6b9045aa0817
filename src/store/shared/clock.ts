/**
 * The store's clock, which decides limits, leases, expiry and days: the wall clock plus an offset in
 * shared memory, so that every thread of a process reads the same time and a test can move it.
 */
import type { Moment } from '../../domain/moment.ts'

export type ClockOffset = SharedArrayBuffer

export const newClockOffset = (): ClockOffset => new SharedArrayBuffer(8)

/** Milliseconds; 0 outside tests. */
export const readOffset = (offset: ClockOffset): number => Number(Atomics.load(new BigInt64Array(offset), 0))

/** Milliseconds since 1970 UTC. */
export const readClock = (offset: ClockOffset): number => Date.now() + readOffset(offset)

export const moveClock = (offset: ClockOffset, byMs: number): void => {
  Atomics.add(new BigInt64Array(offset), 0, BigInt(byMs))
}

/** Now, on both clocks of this process. */
export const momentNow = (): Moment => ({ monotonicMs: performance.now(), wallMs: Date.now() })
