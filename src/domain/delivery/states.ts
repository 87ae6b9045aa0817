/**
 * The states of an email (docs/delivery-states.md draws them) and the reasons an email can end for.
 * `delivered` means that the relay answered 250 after the message; Postern does not know what the
 * relay does with it afterwards.
 */

/** States of an email in the queue. */
export const liveStates = ['queued', 'sending', 'deferred'] as const
/** States of an email that has ended. */
const finalStates = ['delivered', 'failed', 'expired', 'cancelled'] as const
export const emailStates = [...liveStates, ...finalStates] as const

export type LiveState = (typeof liveStates)[number]
export type FinalState = (typeof finalStates)[number]
export type EmailState = LiveState | FinalState

/** Why an email has the state `failed`. */
export const failureReasons = ['refused_by_relay', 'retries_exhausted', 'workers_lost', 'unreadable'] as const
export type FailureReason = (typeof failureReasons)[number]
/** Why an email has the state `cancelled`. */
type CancelReason = 'by_operator' | 'app_inactive'
export type EndReason = FailureReason | CancelReason

/** Emails that ended for one reason: what the store ended itself, without an outcome of a worker. */
export type EndedCount = {
  readonly state: FinalState
  readonly reason: EndReason | null
  readonly count: number
}

/** An email with this many lost leases is a suspect: it is sent while its worker holds nothing else. */
export const suspectAfter = 2
/** An email with this many lost leases has probably killed its workers, and fails. */
export const lostLeasesMax = 5
