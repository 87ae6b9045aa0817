/**
 * The states of an email (docs/delivery-states.md draws them) and the reasons an email can end for.
 * `delivered` means that the relay answered 250 after the message; Postern does not know what the
 * relay does with it afterwards.
 */

import type { AppId, EmailId } from '../id.ts'
import { failureCauses } from './failure-cause.ts'

/** States of an email in the queue. */
export const liveStates = ['queued', 'sending', 'deferred'] as const
/** States in which an email leaves the queue; `suppressed` when it is accepted, without having been in it. */
export const endStates = ['delivered', 'failed', 'expired', 'cancelled', 'suppressed'] as const
/** States of an email that has ended: a report may change `delivered` to one of the last two. */
export const finalStates = [...endStates, 'bounced', 'complained'] as const
export const emailStates = [...liveStates, ...finalStates] as const

export type LiveState = (typeof liveStates)[number]
export type EndState = (typeof endStates)[number]
export type FinalState = (typeof finalStates)[number]
export type EmailState = LiveState | FinalState

/** Whether no worker has the email now. */
export const isWaiting = ({ state }: { readonly state: EmailState }): boolean =>
  state === 'queued' || state === 'deferred'

/** The counts of an app's usage besides refusals: emails accepted, and those that ended. */
export const usageEvents = ['accepted', ...finalStates] as const

/** Why an email has the state `failed`. */
export const failureReasons = ['refused_by_relay', 'retries_exhausted', 'unreadable'] as const
export type FailureReason = (typeof failureReasons)[number]
/** Why an email has the state `cancelled`. */
export const cancelReasons = ['by_operator', 'app_inactive', 'reserved_domain', 'superseded'] as const
/**
 * Why an email has the state `suppressed`. The first has the most weight: a suppression keeps it when strikes
 * of the others come.
 */
export const suppressionReasons = ['operator', 'complaint', 'no_mailbox'] as const
export type SuppressionReason = (typeof suppressionReasons)[number]
/** All of them, and the causes for which an email has the state `bounced`. */
export const endReasons = [...new Set([...failureReasons, ...cancelReasons, ...suppressionReasons, ...failureCauses])]
export type EndReason = (typeof endReasons)[number]

/** An email that the store or an operator ended, without an outcome of a worker. */
export type EndedEmail = {
  readonly emailId: EmailId
  readonly appId: AppId
  readonly state: EndState
  readonly reason: EndReason | null
}

/** An email with this many lost leases is a suspect: it may have killed its workers, and is claimed alone. */
export const suspectAfter = 2
/**
 * How long an email waits after its first, second, … lost lease, in milliseconds; the last value holds
 * for all further ones. It never fails for its workers' deaths: others may have been to blame.
 */
export const lostLeaseWaitsMs = [0, 1000, 5000, 30_000, 120_000, 300_000] as const

/** The same for its nth lost lease, from 1. */
export const lostLeaseWaitMs = (count: number): number =>
  lostLeaseWaitsMs[Math.min(count, lostLeaseWaitsMs.length) - 1] ?? 0

/** An email whose lease was taken back, and how many leases it has lost now. */
export type LostLease = { readonly emailId: EmailId; readonly count: number }
