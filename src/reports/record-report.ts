/**
 * One report in: finds the email that it names, judges it, and records it. The same for reports that come by
 * mail and for those that an operator gives.
 */
import type { Bounce, ReportFinding, ReportSource } from '../domain/delivery/report.ts'
import { classifyDestination, suppressionBy } from '../domain/delivery/suppression.ts'
import type { EmailId } from '../domain/id.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { Emit } from '../observe/events.ts'
import type { EmailRecord } from '../store/operator-store.ts'
import type { RecordedReport } from '../store/report-store.ts'
import type { Store } from '../store/store.ts'
import type { Report } from './read-report.ts'
import type { Action, Row } from './report-rows.ts'

/** `other`: it says nothing of the delivery of an email. */
export type Finding = ReportFinding | { readonly kind: 'other' }

type ReportStore = Pick<Store, 'openReference' | 'findReported' | 'nameRecipient'>

export type ReportDeps = {
  readonly store: ReportStore & Pick<Store, 'recordReport'>
  readonly emit: Emit
  /** Seals the recipient of an email, for the webhook of its app. */
  readonly sealRecipient: (email: EmailId, to: EmailAddress) => string
}

/** `email` is the one that the report names; null if it names none that there is. */
export type ReportMatch = {
  readonly emailId: EmailId | null
  readonly email: EmailRecord | null
  readonly finding: Finding
  /** The recipient, if the report names it. */
  readonly to: EmailAddress | null
}

/**
 * `unmatched`: the report has no reference that this database made. `no_report`: it is about an email, and
 * says nothing of its delivery, as a vacation reply.
 */
export type ReportResult = RecordedReport | { readonly kind: 'unmatched' | 'no_report' }

/** The match of a report that names no email. */
export const noMatch: ReportMatch = { emailId: null, email: null, finding: { kind: 'other' }, to: null }

/** Changes nothing. */
export async function matchReport(store: ReportStore, report: Report): Promise<ReportMatch> {
  const emailId = report.references.map((reference) => store.openReference(reference)).find((id) => id !== null) ?? null
  const email = emailId === null ? null : await store.findReported(emailId)
  const isRecipient = (address: EmailAddress) => store.nameRecipient(address) === email?.recipient
  const addresses = report.rows.flatMap((row) => [row.finalRecipient, row.originalRecipient])
  const to = addresses.find((address) => address !== null && isRecipient(address)) ?? null
  return { emailId, email, finding: judgeReport(report, isRecipient), to }
}

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

export async function recordReport(deps: ReportDeps, match: ReportMatch, source: ReportSource): Promise<ReportResult> {
  const { emailId, email, finding } = match
  const result = await record(deps, match, source)
  deps.emit({
    kind: 'report_received',
    source,
    finding: finding.kind,
    cause: finding.kind === 'bounced' ? finding.cause : null,
    isGone: finding.kind !== 'other' && suppressionBy(finding) === 'no_mailbox',
    result: result.kind,
    emailId,
    appId: email?.app ?? null,
  })
  const isLost = result.kind === 'recorded' && result.isWebhookLost
  const { kind } = finding
  if (isLost && (kind === 'bounced' || kind === 'complained'))
    deps.emit({ kind: 'webhook_lost', appId: result.app, emailId: emailId as EmailId, event: `email.${kind}` })
  return result
}

async function record(
  { store, sealRecipient }: ReportDeps,
  { emailId, finding, to }: ReportMatch,
  source: ReportSource,
): Promise<ReportResult> {
  if (emailId === null) return { kind: 'unmatched' }
  if (finding.kind === 'other') return { kind: 'no_report' }
  const destination = to === null ? 'other' : classifyDestination(to)
  const sealed = to === null ? {} : { sealedTo: sealRecipient(emailId, to) }
  return await store.recordReport({ email: emailId, source, finding, destination, ...sealed })
}
