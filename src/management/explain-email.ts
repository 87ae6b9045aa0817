/** Explains the state of an email in one sentence, for an operator. */

import type { AttemptRecord } from '../domain/delivery/outcome.ts'
import { causeOf, type FailureCause } from '../domain/delivery/smtp-reply.ts'
import { describeDuration } from '../domain/duration.ts'
import type { EmailRecord } from '../store/store.ts'

export function explainEmail(email: EmailRecord): string {
  const last = email.trail.findLast((attempt) => attempt.outcome !== 'lost')
  switch (email.state) {
    case 'queued':
      return last === undefined ? 'It waits for a worker.' : `It waits for a worker. ${describe(last)}`
    case 'sending':
      return `It is being sent now (attempt ${email.attempts}).`
    case 'deferred': {
      const next = `The next attempt is at ${time(email.nextAttemptAt)}.`
      return last === undefined ? next : `${describe(last)} ${next}`
    }
    case 'delivered': {
      const tookMs = (email.finishedAt ?? email.acceptedAt) - email.acceptedAt
      const took = tookMs < 10_000 ? `${(tookMs / 1000).toFixed(1)} s` : describeDuration(tookMs)
      return `The relay ${last?.relay ?? ''} accepted it ${took} after it was queued.`
    }
    case 'failed':
      return explainFailure(email, last)
    case 'expired':
      return `Not sent: ${explainExpiry(last)} until the link expired at ${time(email.expiresAt)}.`
    case 'cancelled':
      return email.reason === 'by_operator'
        ? 'Not sent: an operator cancelled it.'
        : 'Not sent: its app was deleted, or disabled for 7 days.'
    default:
      return email.state satisfies never
  }
}

function describe(attempt: AttemptRecord): string {
  const relay = attempt.relay === undefined ? 'no relay' : `the relay ${attempt.relay}`
  const text = attempt.reply?.text ?? ''
  if (attempt.outcome === 'unattempted')
    return attempt.relay === undefined
      ? `It was not tried: ${text}.`
      : `It was not tried: ${relay} was unavailable (${text}).`
  const unsure =
    attempt.ambiguous === true ? ' The connection was lost after the message: it may have arrived.' : ''
  return `The last attempt was deferred by ${relay}: ${text}.${unsure}`
}

function explainExpiry(last: AttemptRecord | undefined): string {
  if (last === undefined) return 'no worker tried it'
  const text = last.reply?.text ?? ''
  if (last.outcome === 'unattempted')
    return last.relay === undefined
      ? `no attempt was possible (${text})`
      : `the relay ${last.relay} was unavailable (${text})`
  return `the relay ${last.relay ?? ''} deferred it (${text})`
}

const causes: Record<FailureCause, string> = {
  no_mailbox: 'the mailbox does not exist',
  mailbox_full: 'the mailbox is full',
  policy: 'its policy does not allow this email',
  unreachable: 'the next mail server cannot be reached',
  unknown: 'permanent refusal',
}

function explainFailure({ reason }: EmailRecord, last: AttemptRecord | undefined): string {
  const text = last?.reply?.text ?? 'no reply'
  switch (reason) {
    case 'refused_by_relay': {
      const cause = last?.reply === undefined ? causes.unknown : causes[causeOf(last.reply)]
      return `Not sent: the relay ${last?.relay ?? ''} refused it: ${cause} (${text}).`
    }
    case 'retries_exhausted':
      return `Not sent: no attempt succeeded within 48 hours. The last one: ${text}.`
    case 'workers_lost':
      return 'Not sent: five workers died while they held it.'
    case 'unreadable':
      return 'Not sent: its stored content is damaged.'
    default:
      return `Not sent: ${text}.`
  }
}

/** To the second, in UTC. */
const time = (ms: number | null): string =>
  ms === null ? 'an unknown time' : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
