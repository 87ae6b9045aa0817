/** Explains the state of an email in a sentence or two, for an operator. */

import { simulatedRelay } from '../domain/app/test-side.ts'
import { heldDays, retryForHours } from '../domain/bounds.ts'
import { causeOf, type FailureCause } from '../domain/delivery/failure-cause.ts'
import type { AttemptRecord } from '../domain/delivery/outcome.ts'
import { captureRelayName } from '../domain/delivery/relay-state.ts'
import type { ReportKind } from '../domain/delivery/report.ts'
import { isWaiting, type SuppressionReason, suspectAfter } from '../domain/delivery/states.ts'
import { dayMs, describeShortTime } from '../domain/duration.ts'
import { withAdvice } from '../services/advice.ts'
import type { EmailRecord } from '../store/operator-store.ts'
import type { SuppressionRecord } from '../store/report-store.ts'

export type EmailSituation = {
  /** The slug of its app, if that is disabled. */
  readonly disabledApp: string | null
  /** Those of its recipient that concern its app, and have not ended. */
  readonly suppressions: readonly SuppressionRecord[]
  readonly nowMs: number
}

export function explainEmail(email: EmailRecord, situation: EmailSituation): string {
  const { disabledApp } = situation
  if (email.isTest && isSimulated(email)) return explainTest(email)
  const state = disabledApp !== null && isWaiting(email) ? explainHeld(email, disabledApp) : explainState(email)
  const explanation = `${state}${explainSuppressions(email, situation)}`
  const { lostLeases } = email
  if (lostLeases < suspectAfter) return explanation
  const isLive = email.finishedAt === null
  const why = 'each time its worker died, hung, or lost its connection to the database'
  const advice = '. If this email crashes its workers, cancel it'
  return `${explanation} It has lost ${lostLeases} leases: ${why}${isLive ? advice : ''}.`
}

const isSimulated = ({ finishedAt, state, trail }: EmailRecord): boolean =>
  finishedAt !== null && (state === 'suppressed' || trail.at(-1)?.relay === simulatedRelay)

const explainTest = ({ state }: EmailRecord): string =>
  `It was sent with a test key, and its recipient chose the outcome (${state}). It reached no relay.`

function explainHeld(email: EmailRecord, app: string): string {
  const isCancelled = email.expiresAt - email.acceptedAt > heldDays * dayMs
  const end = isCancelled ? `; after ${heldDays} days it is cancelled` : ''
  return `It is held: the app ${app} is disabled or suspended. It will be sent if the app is enabled before the link expires at ${time(email.expiresAt)}${end}.${doubt(email)}`
}

function explainState(email: EmailRecord): string {
  const last = email.trail.findLast(({ outcome, source }) => outcome !== 'lost' && source === undefined)
  switch (email.state) {
    case 'queued':
      return `${waits}${last === undefined ? '' : ` ${describe(last)}`}${doubt(email)}`
    case 'sending':
      return `A worker is sending it (attempt ${email.attempts}).${doubt(email)}`
    case 'deferred': {
      const next = `The next attempt is at ${time(email.nextAttemptAt)}.`
      return `${last === undefined ? '' : `${describe(last)} `}${next}${doubt(email)}`
    }
    case 'delivered': {
      const [arrival, delay] = [findReport(email, 'confirmed'), findReport(email, 'delayed')]
      const delivery = explainDelivery(email, last)
      if (arrival !== undefined)
        return `${delivery} Then it was delivered to its recipient’s server: ${describeReport(email, arrival)}.`
      return delay === undefined ? delivery : `${delivery} It is delayed: ${describeReport(email, delay)}.`
    }
    case 'bounced':
    case 'complained':
      return `${explainDelivery(email, last)} ${explainReport(email, email.state)}`
    case 'failed':
      return notDelivered(email, explainFailure(email, last))
    case 'expired': {
      const why = explainExpiry(email, last)
      return notDelivered(email, `${why} the link expired at ${time(email.expiresAt)}.`)
    }
    case 'suppressed':
      return `Not sent: ${suppressedBecause[email.reason as SuppressionReason]}.`
    case 'cancelled':
      return notDelivered(email, explainCancelling(email.reason))
    default:
      return email.state satisfies never
  }
}

const suppressedBecause: Readonly<Record<SuppressionReason, string>> = {
  no_mailbox: 'its recipient was suppressed, because a mail server had said that the mailbox does not exist',
  complaint: 'its recipient was suppressed, after reporting an earlier email as spam',
  operator: 'an operator had suppressed its recipient',
}

/** Whether the recipient is suppressed now; nothing for an email that never was. */
function explainSuppressions(email: EmailRecord, { nowMs, suppressions }: EmailSituation): string {
  if (suppressions.length === 0) return email.state === 'suppressed' ? ' It is no longer suppressed.' : ''
  return suppressions.map((suppression) => ` ${describeSuppression(email, suppression, nowMs)}`).join('')
}

function describeSuppression(email: EmailRecord, suppression: SuppressionRecord, nowMs: number): string {
  const { app, until, invitationsUntil } = suppression
  const parts = [
    ...(until > nowMs ? [`until ${time(until)}`] : []),
    ...(invitationsUntil > Math.max(until, nowMs) ? [`for invitations until ${time(invitationsUntil)}`] : []),
  ]
  const since =
    suppression.email === null || suppression.email === email.id ? '' : `, since the email ${suppression.email}`
  const reply = suppression.reply === null || since === '' ? '' : ` (${suppression.reply})`
  return `Its recipient is suppressed${app === null ? ' for all apps' : ''} ${parts.join(', and ')}${since}${reply}.`
}

function explainCancelling(reason: EmailRecord['reason']): string {
  if (reason === 'by_operator') return 'an operator cancelled it.'
  if (reason === 'superseded') return 'a newer email with the same kind of link replaced it.'
  if (reason === 'reserved_domain')
    return 'the domain of its recipient is reserved for tests and documentation (RFC 2606), so it would only bounce. Use an address of your own.'
  return `its app was deleted, or disabled or suspended for ${heldDays} days.`
}

function explainDelivery({ acceptedAt, finishedAt }: EmailRecord, last: AttemptRecord | undefined): string {
  const took = describeShortTime((finishedAt ?? acceptedAt) - acceptedAt)
  return last?.relay === captureRelayName
    ? `The dev inbox captured it ${took} after it was queued; nothing was sent.`
    : `The relay ${last?.relay ?? ''} accepted it ${took} after it was queued.`
}

const findReport = ({ trail }: EmailRecord, kind: ReportKind): AttemptRecord | undefined =>
  trail.findLast(({ outcome }) => outcome === kind)

function explainReport(email: EmailRecord, kind: 'bounced' | 'complained'): string {
  const report = findReport(email, kind)
  if (report === undefined) return `Then it ${kind}.`
  const said = describeReport(email, report)
  if (kind === 'complained') return `Its recipient reported it as spam: ${said}.`
  return `Then it bounced: ${causes[email.reason as FailureCause] ?? causes.unknown} (${said}).`
}

/** How long after acceptance a report came, and the reply that it quotes. */
function describeReport({ acceptedAt }: EmailRecord, { at, reply }: AttemptRecord): string {
  const came = `a report came after ${describeShortTime(at - acceptedAt)}`
  return (reply?.text ?? '') === '' ? came : `${reply?.text}; ${came}`
}

const waits = 'It is waiting: no worker has taken it yet, or no relay is available.'

/** A sentence if an attempt ended without an answer of the relay, so that the email may have arrived. */
const doubt = ({ trail }: EmailRecord): string =>
  trail.some(({ ambiguous, outcome }) => ambiguous === true || outcome === 'lost')
    ? ' It may have arrived: an attempt got no answer.'
    : ''

/** "Not sent" is said only if no attempt can have arrived. */
function notDelivered(email: EmailRecord, why: string): string {
  const doubted = doubt(email)
  return `${doubted === '' ? 'Not sent' : 'Not confirmed'}: ${why}${doubted}`
}

function describe(attempt: AttemptRecord): string {
  const { outcome, relay } = attempt
  const text = attempt.reply?.text ?? ''
  if (outcome === 'unattempted')
    return relay === undefined
      ? `It was not tried: ${text}.`
      : `It was not tried because the relay ${relay} was unavailable: ${withAdvice(text)}.`
  if (relay === undefined) return `The last attempt failed inside Postern: ${text}.`
  return `The last attempt was deferred by the relay ${relay}: ${withAdvice(text)}.`
}

function explainExpiry({ trail }: EmailRecord, last: AttemptRecord | undefined): string {
  if (last === undefined)
    return trail.length === 0
      ? 'no attempt was made before'
      : 'every worker that tried it died or lost its lease before'
  const { outcome, relay } = last
  const text = last.reply?.text ?? ''
  if (outcome === 'unattempted')
    return relay === undefined
      ? `no attempt was possible (${text}) before`
      : `the relay ${relay} was unavailable: ${withAdvice(text)}, until`
  return relay === undefined
    ? `the last attempt failed inside Postern (${text}), and then`
    : `the relay ${relay} deferred it (${text}) until`
}

const causes: Record<FailureCause, string> = {
  no_mailbox: 'the mailbox does not exist',
  mailbox_full: 'the mailbox is full',
  policy: 'a policy of the server does not allow this email',
  unreachable: 'the next mail server cannot be reached',
  relay_suppressed: 'the relay has the address on its own list of recipients that get nothing; take it off there',
  expired_at_relay: 'the relay, or a mail server behind it, could not deliver it in time and gave up',
  unknown: 'a permanent error',
}

function explainFailure({ reason }: EmailRecord, last: AttemptRecord | undefined): string {
  const text = last?.reply?.text ?? 'no reply'
  switch (reason) {
    case 'refused_by_relay': {
      const cause = last?.reply === undefined ? causes.unknown : causes[causeOf(last.reply)]
      return `the relay ${last?.relay ?? ''} refused it: ${cause} (${withAdvice(text)}).`
    }
    case 'retries_exhausted':
      return last?.relay === undefined
        ? `no attempt succeeded within ${retryForHours} hours.`
        : `no attempt succeeded within ${retryForHours} hours. The last one: ${text}.`
    case 'unreadable':
      return 'its stored content is damaged.'
    default:
      return `${text}.`
  }
}

/** To the second, in UTC. */
const time = (ms: number | null): string =>
  ms === null ? 'an unknown time' : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
