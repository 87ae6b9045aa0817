/**
 * One moment on both clocks of a machine. The monotonic clock stands still while the machine is suspended,
 * and the wall clock can be set, so what must not happen too late is measured by the one that says more.
 */
export type Moment = { readonly monotonicMs: number; readonly wallMs: number }

/** How long `moment` is ago. */
export const sinceMs = (moment: Moment, now: Moment): number =>
  Math.max(now.monotonicMs - moment.monotonicMs, now.wallMs - moment.wallMs)
