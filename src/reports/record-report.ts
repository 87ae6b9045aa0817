/**
 * One report in: finds the email that it names, judges it, and records it. The same for reports that come by
 * mail and for those that an operator gives.
 */
import type { ReportSource } from '../domain/delivery/report.ts'
import { classifyDestination, type Destination, suppressionBy } from '../domain/delivery/suppression.ts'
import type { EmailId } from '../domain/id.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { Emit } from '../observe/events.ts'
import type { EmailRecord } from '../store/operator-store.ts'
import type { RecordedReport } from '../store/report-store.ts'
import type { Store } from '../store/store.ts'
import { type Finding, judgeReport } from './judge-report.ts'
import type { Report } from './read-report.ts'

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
  readonly destination: Destination
  /** The recipient, if the report names it. */
  readonly to: EmailAddress | null
}

/**
 * `unmatched`: the report has no reference that this database made. `no_report`: it is about an email, and
 * says nothing of its delivery, as a vacation reply.
 */
export type ReportResult = RecordedReport | { readonly kind: 'unmatched' | 'no_report' }

/** The match of a report that names no email. */
export const noMatch: ReportMatch = {
  emailId: null,
  email: null,
  finding: { kind: 'other' },
  destination: 'other',
  to: null,
}

/** Changes nothing. */
export async function matchReport(store: ReportStore, report: Report): Promise<ReportMatch> {
  const emailId = report.references.map((reference) => store.openReference(reference)).find((id) => id !== null)
  const email = emailId === undefined ? null : await store.findReported(emailId)
  const isRecipient = (address: EmailAddress) => store.nameRecipient(address) === email?.recipient
  const finding = judgeReport(report, isRecipient)
  const addresses = report.rows.flatMap((row) => [row.finalRecipient, row.originalRecipient])
  const recipient = addresses.find((address) => address !== null && isRecipient(address))
  return {
    emailId: emailId ?? null,
    email,
    finding,
    destination: recipient == null ? 'other' : classifyDestination(recipient),
    to: recipient ?? null,
  }
}

export async function recordReport(
  { store, emit, sealRecipient }: ReportDeps,
  { emailId, email, finding, destination, to }: ReportMatch,
  source: ReportSource,
): Promise<ReportResult> {
  const sealedTo = emailId === null || to === null ? null : sealRecipient(emailId, to)
  const result = await record(store, { emailId, finding, destination, sealedTo }, source)
  emit({
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
    emit({ kind: 'webhook_lost', appId: result.app, emailId: emailId as EmailId, event: `email.${kind}` })
  return result
}

async function record(
  store: Pick<Store, 'recordReport'>,
  { emailId, finding, destination, sealedTo }: Omit<ReportMatch, 'email' | 'to'> & { sealedTo: string | null },
  source: ReportSource,
): Promise<ReportResult> {
  if (emailId === null) return { kind: 'unmatched' }
  if (finding.kind === 'other') return { kind: 'no_report' }
  const more = sealedTo === null ? {} : { sealedTo }
  return await store.recordReport({ email: emailId, source, finding, destination, ...more })
}
