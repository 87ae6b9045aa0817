/**
 * One moment on both clocks of a machine. The monotonic clock stops while the machine is suspended, and the
 * wall clock can be set, so a deadline is measured by the clock on which more time has passed.
 */
export type Moment = { readonly monotonicMs: number; readonly wallMs: number }

export const sinceMs = (moment: Moment, now: Moment): number =>
  Math.max(now.monotonicMs - moment.monotonicMs, now.wallMs - moment.wallMs)
