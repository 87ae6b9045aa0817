/** Reports about emails: the state and the record of the email, and the counts of the day. */
import { trailMax } from '../../domain/bounds.ts'
import type { AttemptRecord } from '../../domain/delivery/outcome.ts'
import { judgeRecord, type ReportSource } from '../../domain/delivery/report.ts'
import type { EndReason, FinalState } from '../../domain/delivery/states.ts'
import { suppressionBy } from '../../domain/delivery/suppression.ts'
import { dayMs, minuteMs } from '../../domain/duration.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import type { HeardSource, RecordedReport, ReportRecord, Strike } from '../report-store.ts'
import type { Row } from '../shared/rows.ts'
import { emailReads } from './emails.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'
import { strike as addStrike, forgive, strikeRefused } from './strikes.ts'
import { type Added, addWebhookMessage } from './webhooks.ts'

function* recordReport(context: ScriptContext, report: ReportRecord): Script<RecordedReport> {
  const result = yield* record(context, report)
  if (result.kind !== 'waiting' && result.kind !== 'unknown') yield* hear(context, report.source)
  return result
}

function* record(context: ScriptContext, report: ReportRecord): Script<RecordedReport> {
  const { nowMs, prefix } = context
  const { email, finding } = report
  const known = yield* lockReported(context, email)
  if (known === 'waiting' || known === 'unknown') return { kind: known }
  const judged = judgeRecord(known, finding.kind, nowMs)
  if (judged.kind !== 'recorded') return { kind: judged.kind }
  const { state } = judged
  const reason = state === known.state ? known.reason : finding.kind === 'bounced' ? finding.cause : null
  const trail = [...known.trail.slice(-trailMax + 1), toLine(report, nowMs)]
  yield {
    text: `update ${prefix}history set state = $2, reason = $3, trail = $4 where email_id = $1`,
    values: [email, state, reason, JSON.stringify(trail)],
  }
  if (state !== known.state && state !== 'delivered') yield* countUsage(context, known.app, state)
  const strike = yield* suppress(context, report, known)
  const isWebhookLost = (yield* notifyApp(context, report, { ...known, strike })) === 'full'
  return { kind: 'recorded', app: known.app, state, strike, isWebhookLost }
}

/** A webhook for the app, in the transaction of the report, so that a crash loses none. */
function* notifyApp(
  context: ScriptContext,
  { email, finding, sealedTo }: ReportRecord,
  { app, strike, type }: ReturnType<typeof toReported> & { readonly strike: Strike },
): Script<Added> {
  if (finding.kind !== 'bounced' && finding.kind !== 'complained') return 'unwanted'
  const facts = {
    emailType: type,
    ...(finding.kind === 'bounced' && { cause: finding.cause, permanent: finding.permanent }),
    ...(strike.kind === 'suppressed' && { suppressedUntil: new Date(strike.until).toISOString() }),
  }
  const event = `email.${finding.kind}` as const
  return yield* addWebhookMessage(context, { app, event, email, facts, sealed: sealedTo ?? null })
}

function* lockReported(
  context: ScriptContext,
  email: EmailId,
): Script<ReturnType<typeof toReported> | 'waiting' | 'unknown'> {
  const { prefix } = context
  const text = `select app_id, recipient, type, state, reason, accepted_at, trail from ${prefix}history
    where email_id = $1 ${lock(context, 'for update')}`
  const find = () => readOne({ text, values: [email] }, toReported)
  const ended = yield* find()
  if (ended !== null) return ended
  const queued = yield { text: `select 1 from ${prefix}queue where email_id = $1`, values: [email] }
  if (queued.length > 0) return 'waiting'
  // It may have moved from the queue to the history between the two.
  return (yield* find()) ?? 'unknown'
}

/** A report may suppress its recipient, or end a suppression. */
function* suppress(
  context: ScriptContext,
  { destination, email, finding }: ReportRecord,
  { acceptedAt, app, recipient, state, trail }: ReturnType<typeof toReported>,
): Script<Strike> {
  const to = { app, recipient, destination }
  if (finding.kind === 'not_spam' && state === 'complained') yield* forgive(context, to, 'complaint')
  const hasBounced = trail.some(({ outcome }) => outcome === 'bounced')
  if (finding.kind === 'confirmed' && !hasBounced) yield* forgive(context, to, 'no_mailbox')
  const reason = suppressionBy(finding)
  if (reason === null) return { kind: 'none' }
  const reply = 'reply' in finding ? finding.reply.text : null
  return yield* addStrike(context, to, { reason, email, acceptedAt, reply })
}

/**
 * Notes when a source was last heard, once a minute: the row is one for all processes, which would wait for
 * each other.
 */
function* hear({ nowMs, prefix }: ScriptContext, source: ReportSource): Script<void> {
  const [recent] = yield {
    text: `select 1 from ${prefix}report_source where source = $1 and heard_at > $2`,
    values: [source, nowMs - minuteMs],
  }
  if (recent !== undefined) return
  yield {
    text: `insert into ${prefix}report_source as known (source, heard_at) values ($1, $2)
      on conflict (source) do update set heard_at = excluded.heard_at where excluded.heard_at > known.heard_at`,
    values: [source, nowMs],
  }
}

function* listReportSources({ prefix }: ScriptContext): Script<HeardSource[]> {
  const text = `select source, heard_at from ${prefix}report_source order by source`
  return yield* readAll({ text, values: [] }, (row) => ({
    source: row.source as ReportSource,
    heardAt: row.heard_at as number,
  }))
}

const toReported = (row: Row) => ({
  app: row.app_id as AppId,
  recipient: row.recipient as string,
  type: row.type as EmailType,
  state: row.state as FinalState,
  reason: row.reason as EndReason | null,
  acceptedAt: row.accepted_at as number,
  trail: JSON.parse(row.trail as string) as AttemptRecord[],
})

const toLine = ({ finding, source }: ReportRecord, at: number): AttemptRecord => ({
  at,
  outcome: finding.kind,
  source,
  ...('reply' in finding && { reply: finding.reply }),
})

/** Adds one to a count of the day. */
function* countUsage({ dialect, nowMs, prefix }: ScriptContext, app: AppId, event: string): Script<void> {
  const { column, value } = dialect.usageSlot
  yield {
    text: `insert into ${prefix}usage_day as known (app_id, day, event, ${column}count) values ($1, $2, $3, ${value}1)
      on conflict (${column}app_id, day, event) do update set count = known.count + 1`,
    values: [app, Math.floor(nowMs / dayMs), event],
  }
}

export const reportChanges = { recordReport, strikeRefused }
export const reportReads = { findReported: emailReads.findEmail, listReportSources }
