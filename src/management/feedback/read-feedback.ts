/** Reads a report about an email, as the bounce listener does, and says how it was understood. */
import { Type } from 'typebox'
import { feedbackDays, reportTextMax } from '../../domain/bounds.ts'
import { failureCauses } from '../../domain/delivery/failure-cause.ts'
import { isReported, isTooLate, stateAfter } from '../../domain/delivery/feedback.ts'
import { type FinalState, finalStates } from '../../domain/delivery/states.ts'
import type { Finding } from '../../feedback/judge-report.ts'
import { readReport } from '../../feedback/read-report.ts'
import {
  matchReport,
  type ReportMatch,
  type ReportResult,
  recordReport,
} from '../../feedback/record-report.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { EmailResource, presentEmail } from '../resources.ts'

const findingKinds = ['bounced', 'delayed', 'complained', 'not_spam', 'other'] as const
const results = ['recorded', 'already', 'waiting', 'stale', 'unknown', 'unmatched', 'no_report'] as const

const ReadFeedback = closed({
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
  reply: orNull(
    Type.String({ description: 'The reply that the report quotes, without addresses and links.' }),
  ),
  email: orNull(EmailResource),
})

export const readFeedback = operation({
  method: 'POST',
  path: '/v1/feedback/read',
  role: 'operator',
  target: 'none',
  wholeService: true,
  summary:
    'Reads a report about an email (a bounce or a complaint) and records it, as if it had come by mail.',
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
  answer: ReadFeedback,
  async run(context, { body: { report: text, recipient = null, dryRun = false } }) {
    const { access, store } = context
    const report = readReport(Buffer.from(text), recipient)
    const match = await matchReport(store, report)
    const result = dryRun ? foresee(context, match) : await recordReport(context, match, 'read')
    if (!dryRun) {
      const { email, emailId } = match
      const action = {
        action: 'feedback.read',
        app: email?.app ?? null,
        target: emailId ?? 'service',
      } as const
      await store.recordAction({ ...action, before: null, after: { result } }, access.actor)
    }
    const { email, finding } = match
    return done({
      result,
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

/** The result that recording would have. */
function foresee({ store }: Context, { email, emailId, finding }: ReportMatch): ReportResult {
  if (emailId === null) return 'unmatched'
  if (finding.kind === 'other') return 'no_report'
  if (email === null) return 'unknown'
  if (!isFinal(email.state)) return 'waiting'
  if (isTooLate(email.acceptedAt, store.now())) return 'stale'
  return isReported(email.trail, finding.kind, store.now()) ? 'already' : 'recorded'
}

function explain({ email, finding }: ReportMatch, result: ReportResult, dryRun: boolean): string {
  switch (result) {
    case 'recorded': {
      const state =
        email !== null && isFinal(email.state) && finding.kind !== 'other'
          ? stateAfter(email.state, finding.kind)
          : null
      const text = `${dryRun ? 'It would be recorded' : 'It is recorded'}`
      return state === email?.state || state === null
        ? `${text}; the email keeps its state.`
        : `${text}: the email ${dryRun ? 'would be' : 'is now'} ${state}.`
    }
    case 'already':
      return 'The record of the email has a report like this, so nothing changes.'
    case 'waiting':
      return 'The email is still in the queue. Read the report again when the email has ended.'
    case 'stale':
      return `The email was accepted more than ${feedbackDays} days ago, so the report no longer counts.`
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
