/** Reports about emails: where they come in, and how one is read, as the bounce listener does. */
import { Type } from 'typebox'
import { reportDays, reportedDays, reportTextMax } from '../../domain/bounds.ts'
import { failureCauses } from '../../domain/delivery/failure-cause.ts'
import { judgeRecord, reportKinds } from '../../domain/delivery/report.ts'
import { type FinalState, finalStates } from '../../domain/delivery/states.ts'
import { suppressionBy } from '../../domain/delivery/suppression.ts'
import { readReport } from '../../reports/read-report.ts'
import type { Finding } from '../../reports/record-report.ts'
import { matchReport, type ReportMatch, type ReportResult, recordReport } from '../../reports/record-report.ts'
import { eventServices, reportSources } from '../../services/services.ts'
import type { Strike } from '../../store/report-store.ts'
import { ActivityCounts } from '../activity.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { EmailResource, isoOrNull, presentEmail } from '../resources.ts'
import { findBounceBases } from '../service/check-bounces.ts'

const { bounced, complained } = ActivityCounts.properties

export const showReports = operation({
  method: 'GET',
  path: '/v1/reports',
  role: 'reader',
  wholeService: true,
  summary: `Shows where reports come in at the process that answers, when each source was last heard, and the bounces and complaints of the last ${reportedDays} days.`,
  answer: closed({
    bounceAddress: orNull(Type.String({ description: 'Each email gets a bounce address of its own from it.' })),
    apps: Type.Array(Type.String(), {
      description: 'The slugs of the apps with such an address of their own.',
    }),
    bounceListener: orNull(Type.String({ description: 'Where the process that answers takes reports by SMTP.' })),
    reportsListener: orNull(
      Type.String({ description: 'Where the process that answers takes webhooks of mail providers.' }),
    ),
    providers: Type.Array(Type.Enum(eventServices.map(({ name }) => name)), {
      description: 'Those whose calls it can verify.',
    }),
    sources: Type.Array(closed({ source: Type.Enum([...reportSources]), heardAt: time() }), {
      description: 'The sources that were heard so far, and when the last report of each came.',
    }),
    bounced,
    complained,
    lastAt: orNull(time()),
  }),
  async run({ store, bounceAddress, bounceListener, reportsListener, reportProviders, reports }) {
    const { lastAt, ...counts } = await reports.get()
    const heard = await store.listReportSources()
    const apps = findBounceBases(await store.listApps()).map(({ slug }) => slug)
    return done({
      ...{ bounceAddress, apps, bounceListener, reportsListener, providers: [...reportProviders] },
      sources: heard.map(({ heardAt, source }) => ({ source, heardAt: new Date(heardAt).toISOString() })),
      ...counts,
      lastAt: isoOrNull(lastAt),
    })
  },
})

const findingKinds = [...reportKinds, 'other'] as const
const results = [
  ...['recorded', 'already', 'waiting', 'stale', 'unknown', 'unmatched', 'no_report'],
] as const satisfies readonly ReportResult['kind'][]

const ReadReport = closed({
  result: Type.Enum([...results]),
  explanation: Type.String({ description: 'The result in a sentence.' }),
  finding: Type.Enum([...findingKinds], { description: '`other`: it says nothing of a delivery.' }),
  form: Type.Enum(['fields', 'text'], { description: '`text`: prose, from which less is certain.' }),
  about: orNull(
    Type.Enum(['recipient', 'other', 'unknown'], {
      description: 'For a bounce: whose address failed, seen from the email.',
    }),
  ),
  cause: orNull(Type.Enum([...failureCauses])),
  permanent: orNull(Type.Boolean()),
  reply: orNull(Type.String({ description: 'The reply that the report quotes, without addresses and links.' })),
  email: orNull(EmailResource),
})

export const readReports = operation({
  method: 'POST',
  path: '/v1/reports/read',
  role: 'operator',
  wholeService: true,
  summary: 'Reads a report about an email (a bounce or a complaint) and records it, as if it had come by mail.',
  body: closed({
    report: Type.String({
      minLength: 1,
      maxLength: reportTextMax,
      description: 'The report as it came, headers first.',
    }),
    recipient: Type.Optional(
      Type.String({
        maxLength: 320,
        description: 'The address that the report was sent to, if it is known.',
      }),
    ),
    dryRun: Type.Optional(Type.Boolean({ description: 'Explain the report, and record nothing.' })),
  }),
  answer: ReadReport,
  async run(context, { body: { report: text, recipient = null, dryRun = false } }) {
    const { access, store } = context
    const report = await readReport(Buffer.from(text), recipient)
    const match = await matchReport(store, report)
    const result = dryRun ? foresee(context, match) : await recordReport(context, match, 'read')
    if (!dryRun) {
      const { email, emailId } = match
      const action = {
        action: 'report.read',
        app: email?.app ?? null,
        target: emailId ?? 'service',
      } as const
      await store.recordAction({ ...action, before: null, after: { result: result.kind } }, access.actor)
    }
    const { email, finding } = match
    return done({
      result: result.kind,
      explanation: explain(match, result, dryRun),
      finding: finding.kind,
      form: report.form,
      ...presentFinding(finding),
      email: email && presentEmail((!dryRun && (await store.findEmail(email.id))) || email),
    })
  },
})

const presentFinding = (finding: Finding) => ({
  about: finding.kind === 'bounced' ? finding.about : null,
  cause: finding.kind === 'bounced' ? finding.cause : null,
  permanent: finding.kind === 'bounced' ? finding.permanent : null,
  reply: 'reply' in finding ? finding.reply.text : null,
})

const isFinal = (state: string): state is FinalState => finalStates.some((name) => name === state)

/** The result that recording would have, without a strike. */
function foresee({ store }: Context, { email, emailId, finding }: ReportMatch): ReportResult {
  if (emailId === null) return { kind: 'unmatched' }
  if (finding.kind === 'other') return { kind: 'no_report' }
  if (email === null) return { kind: 'unknown' }
  const { app, state } = email
  if (!isFinal(state)) return { kind: 'waiting' }
  const judged = judgeRecord({ ...email, state }, finding.kind, store.now())
  if (judged.kind !== 'recorded') return { kind: judged.kind }
  return { ...judged, app, strike: { kind: 'none' }, isWebhookLost: false }
}

function explain({ email, finding }: ReportMatch, result: ReportResult, dryRun: boolean): string {
  switch (result.kind) {
    case 'recorded': {
      const recorded = dryRun ? 'It would be recorded' : 'It is recorded'
      const state =
        result.state === email?.state
          ? `${recorded}; the email keeps its state.`
          : `${recorded}: the email ${dryRun ? 'would be' : 'is now'} ${result.state}.`
      return [state, ...explainStrike(finding, result.strike, dryRun)].join(' ')
    }
    case 'already':
      return 'The record of the email has a report like this, so nothing changes.'
    case 'waiting':
      return 'The email is still in the queue. Read the report again when the email has ended.'
    case 'stale':
      return `The email was accepted more than ${reportDays} days ago, so the report no longer counts.`
    case 'unknown':
      return 'The report names an email of this service whose record is gone.'
    case 'unmatched':
      return 'The report names no email of this service. If you know the address that it was sent to, give that too: it may hold the reference.'
    case 'no_report':
      return 'It names an email, but is neither a bounce nor a complaint: perhaps a vacation reply.'
    default:
      return result satisfies never
  }
}

function explainStrike(finding: Finding, strike: Strike, dryRun: boolean): string[] {
  if (dryRun)
    return finding.kind !== 'other' && suppressionBy(finding) !== null
      ? ['Its recipient would be suppressed for a while.']
      : []
  switch (strike.kind) {
    case 'none':
      return []
    case 'massive':
      return [
        'Its recipient is not suppressed: so many mailboxes were called missing within minutes that it is probably a mistake of a mail server.',
      ]
    case 'suppressed':
      return [`Its recipient is suppressed until ${new Date(strike.until).toISOString()}.`]
    default:
      return strike satisfies never
  }
}
