/** The parts of the queue, by the conditions of its partial indexes. Every email is in one of them. */
import { heldDays } from '../../domain/bounds.ts'
import { suspectAfter } from '../../domain/delivery/states.ts'
import { dayMs } from '../../domain/duration.ts'

export const queueParts = {
  ready: `state = 'queued' and lost_leases < ${suspectAfter}`,
  suspect: `state = 'queued' and lost_leases >= ${suspectAfter}`,
  deferred: "state = 'deferred'",
  // Always true; it lets the planner search the index of leases, which is small, for lack of one by app.
  sending: "state = 'sending' and lease_until > -1",
} as const

/** Whether the queued mail of an app is cancelled: it is deleted, or has been inactive for `heldDays`. */
export const isInactive = (nowMs: string): string =>
  `status <> 'active' and (status = 'deleted' or status_at <= ${nowMs} - ${heldDays * dayMs})`
