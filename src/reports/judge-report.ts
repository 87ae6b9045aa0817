/** The meaning of a report for the email that it is about. */
import type { Bounce, ReportFinding } from '../domain/delivery/report.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { Report } from './read-report.ts'
import type { Action, Row } from './report-rows.ts'

/** `other`: it says nothing of the delivery of an email. */
export type Finding = ReportFinding | { readonly kind: 'other' }

/** @param isRecipient whether an address is the one that the email was sent to */
export function judgeReport(report: Report, isRecipient: (address: EmailAddress) => boolean): Finding {
  const about = (row: Row): Bounce['about'] =>
    row.finalRecipient === null ? 'unknown' : isRecipient(row.finalRecipient) ? 'recipient' : 'other'
  const choose = (action: Action): Row | undefined => {
    const rows = report.rows.filter((row) => row.action === action)
    return rows.find((row) => about(row) === 'recipient') ?? rows[0]
  }
  const { kind } = report
  if (kind !== 'bounced' && kind !== 'delayed')
    return report.rows.some((row) => about(row) === 'other') ? { kind: 'other' } : { kind }
  const row = choose(kind === 'bounced' ? 'failed' : 'delayed')
  if (row === undefined) return { kind: 'other' }
  const { permanent, cause, reply } = row
  return kind === 'delayed' ? { kind, reply } : { kind, about: about(row), permanent, cause, reply }
}
