/** The part of a store that takes reports about emails. The rules of `store.ts` hold. */
import type { FeedbackFinding, FeedbackSource } from '../domain/delivery/feedback.ts'
import type { FinalState } from '../domain/delivery/states.ts'
import type { AppId, EmailId } from '../domain/id.ts'

export type Feedback = {
  readonly email: EmailId
  readonly source: FeedbackSource
  readonly finding: FeedbackFinding
}

/**
 * `already`: the record has this report. `waiting`: the email is still in the queue, so report it later.
 * `stale`: it was accepted more than `feedbackDays` ago. `unknown`: there is no record of it.
 */
export type FeedbackResult =
  | { readonly kind: 'recorded'; readonly app: AppId; readonly state: FinalState }
  | { readonly kind: 'already' | 'waiting' | 'stale' | 'unknown' }

export interface FeedbackStore {
  recordFeedback(feedback: Feedback): Promise<FeedbackResult>
}
