/** What a report means for the email that it is about. */
import type { FailureCause } from '../domain/delivery/failure-cause.ts'
import type { Reply } from '../domain/delivery/reply.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { Report } from './read-report.ts'
import type { Action, Row } from './report-rows.ts'

type Bounce = {
  readonly kind: 'bounced'
  /**
   * The address that failed: the email's recipient, another (a forward, or a member of a team behind the
   * address), or unknown: in prose, or without a Final-Recipient.
   */
  readonly about: 'recipient' | 'other' | 'unknown'
  /** No later attempt would succeed. */
  readonly permanent: boolean
  readonly cause: FailureCause
  readonly reply: Reply
}

export type Finding =
  | Bounce
  | { readonly kind: 'delayed'; readonly reply: Reply }
  | { readonly kind: 'complained' | 'not_spam' | 'other' }

/** @param isRecipient whether an address is the one that the email was sent to */
export function judgeReport(report: Report, isRecipient: (address: EmailAddress) => boolean): Finding {
  const about = (row: Row): Bounce['about'] =>
    row.finalRecipient === null ? 'unknown' : isRecipient(row.finalRecipient) ? 'recipient' : 'other'
  const choose = (action: Action): Row | undefined => {
    const rows = report.rows.filter((row) => row.action === action)
    return rows.find((row) => about(row) === 'recipient') ?? rows[0]
  }
  const { kind } = report
  if (kind !== 'bounced' && kind !== 'delayed') return { kind }
  const row = choose(kind === 'bounced' ? 'failed' : 'delayed')
  if (row === undefined) return { kind: 'other' }
  const { permanent, cause, reply } = row
  return kind === 'delayed' ? { kind, reply } : { kind, about: about(row), permanent, cause, reply }
}

/** Whether a report proves that the email's recipient does not exist: fields say so, not prose. */
export const provesNoMailbox = (finding: Finding): boolean =>
  finding.kind === 'bounced' &&
  finding.about === 'recipient' &&
  finding.permanent &&
  finding.cause === 'no_mailbox'
