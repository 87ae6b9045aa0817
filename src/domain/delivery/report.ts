/**
 * Reports about an email that a relay had taken. A report is recorded at most once, changes the
 * state of a delivered email, and leaves a line in its record.
 */
import { delayedReportsMax, reportDays } from '../bounds.ts'
import { dayMs, hourMs } from '../duration.ts'
import type { FailureCause } from './failure-cause.ts'
import type { Reply } from './reply.ts'
import type { FinalState } from './states.ts'

/**
 * The way by which a report came. `mail`: the bounce listener. `read`: an operator or a program gave it to
 * `report read`. Otherwise the name of the mail service whose webhook it was.
 */
export type ReportSource = string

/** `confirmed`: a mail service delivered the email to the server of its recipient. */
export const reportKinds = ['bounced', 'delayed', 'complained', 'not_spam', 'confirmed'] as const
export type ReportKind = (typeof reportKinds)[number]

/** The statement of a report about an email. */
export type ReportFinding =
  | Bounce
  | { readonly kind: 'delayed'; readonly reply: Reply }
  | { readonly kind: 'complained' | 'not_spam' | 'confirmed' }

/** A mail server behind the relay gave up. */
export type Bounce = {
  readonly kind: 'bounced'
  /**
   * The address that failed: the recipient of the email, another one behind it (a forward, a member of a
   * list), or unknown, since the report does not name it in a field.
   */
  readonly about: 'recipient' | 'other' | 'unknown'
  /** No later attempt would succeed. */
  readonly permanent: boolean
  readonly cause: FailureCause
  readonly reply: Reply
}

type RecordLine = { readonly at: number; readonly outcome: string }

type ReportedEmail = {
  readonly acceptedAt: number
  readonly state: FinalState
  readonly trail: readonly RecordLine[]
}

/** The meaning of a report for the record of its email. `state`: that of the email from then on. */
export function judgeRecord(
  { acceptedAt, state, trail }: ReportedEmail,
  kind: ReportKind,
  nowMs: number,
): { readonly kind: 'stale' | 'already' } | { readonly kind: 'recorded'; readonly state: FinalState } {
  // Mail servers give up after five days; a later report is a mistake, or forged.
  if (nowMs - acceptedAt > reportDays * dayMs) return { kind: 'stale' }
  return isReported(trail, kind, nowMs)
    ? { kind: 'already' }
    : { kind: 'recorded', state: changes[kind][state] ?? state }
}

const isReported = (trail: readonly RecordLine[], kind: ReportKind, nowMs: number): boolean => {
  const lines = trail.filter(({ outcome }) => outcome === kind)
  if (kind !== 'delayed') return lines.length > 0
  return lines.length >= delayedReportsMax || lines.some(({ at }) => nowMs - at < hourMs)
}

/**
 * The states that a report changes. An email that did not leave keeps the state that says why. A server that
 * took an email may still bounce it, and events come in any order.
 */
const changes: Readonly<Record<ReportKind, Readonly<Partial<Record<FinalState, FinalState>>>>> = {
  bounced: { delivered: 'bounced' },
  complained: { delivered: 'complained', bounced: 'complained' },
  not_spam: { complained: 'delivered' },
  delayed: {},
  confirmed: {},
}
