/** The lines that the log writes for each kind of event. */
import { retryForHours } from '../domain/bounds.ts'
import { inClear } from '../domain/delivery/relay-state.ts'
import { describeLack } from '../domain/machine-faults.ts'
import { endedLines, takenBackLines, webhookLine } from './email-lines.ts'
import type {
  AttemptRecorded,
  ConsoleSignIn,
  OperationAnswered,
  PosternEvent,
  ReportReceived,
  RequestAnswered,
  RequestRefused,
} from './events.ts'
import type { Fields, Line } from './line.ts'

type Kind = PosternEvent['kind']

const standsBy = 'another process sends the mail of this database; this one takes over when that one stops'
const takesOver = 'took over sending: the previous process has ended or released the worker lock'
const sessionMissing =
  'this worker has no database session: if it dies meanwhile, its mail waits up to 60 s. "postern doctor" says why'

/** The lines of each kind of event. */
const lines: {
  readonly [K in Kind]: (event: Extract<PosternEvent, { kind: K }>) => Line | readonly Line[]
} = {
  request_answered: requestLine,
  operation_answered: operationLine,
  attempt_recorded: attemptLine,
  console_sign_in: signInLine,
  emails_ended: ({ ended }) => endedLines(ended),
  leases_taken_back: takenBackLines,
  report_received: reportLine,
  // These are counted, not logged.
  mail_claimed: () => [],
  group_written: () => [],
  link_viewed: () => [],
  relay_changed: ({ relay, available, reason }) =>
    available
      ? { level: 'warn', text: 'the relay is available again', fields: { relay } }
      : {
          level: 'error',
          text: `the relay is unavailable, or refuses all mail; mail waits until a relay accepts it, its link expires, or ${retryForHours} hours have passed`,
          fields: { relay, reason },
        },
  relay_in_clear: ({ relay }) => ({ level: 'warn', text: `mail is sent ${inClear}`, fields: { relay } }),
  backpressure_changed: ({ kind, active }) => ({
    level: 'warn',
    text: active
      ? 'backpressure: requests wait, and some are answered 503, because more mail arrives than this process can deliver'
      : 'backpressure has ended: requests no longer wait',
    fields: {},
    kind: `${kind} ${active}`,
  }),
  standby_changed: ({ standby }) => ({ level: 'warn', text: standby ? standsBy : takesOver, fields: {} }),
  session_changed: ({ available }) => {
    const text = available ? 'this worker has its database session back' : sessionMissing
    return { level: 'warn', text, fields: {} }
  },
  store_unavailable: ({ kind, work, requestId, error }) => ({
    level: 'warn',
    text: `the store failed when asked ${asked[work]}`,
    fields: { requestId, err: error },
    kind,
  }),
  store_write_failed: ({ error: err }) => ({
    ...{ level: 'error', text: 'the store cannot write; sending stops until it can', fields: { err } },
  }),
  outcome_unconfirmed: ({ emailId }) => ({
    level: 'error',
    text: 'an outcome was not confirmed by the store (lease lost); the email may be sent again',
    fields: { email: emailId },
  }),
  log_changed: ({ reason, lost }) => ({
    level: 'warn',
    text:
      reason === null
        ? 'log lines can be written again; "lost" counts those since the start that could not be'
        : 'log lines cannot be written to standard output: they wait, and when there are too many they are lost. Mail is not affected',
    fields: { lost, ...(reason !== null && { reason }) },
  }),
  attempts_unrecorded: ({ count }) => ({
    level: 'error',
    text: 'the process stopped before these attempts were recorded; they may be made again',
    fields: { count },
  }),
  key_missing: ({ emails, keyId }) => ({
    level: 'error',
    text: 'emails wait for the key that sealed them: put it back into POSTERN_SECRET_KEYS and restart, and they are sent at once, unless their links have expired',
    fields: { key: keyId, emails },
  }),
  auth_hook_secret_closed: ({ keyId }) => ({
    level: 'error',
    text: 'the secret of an auth server cannot be opened, so its calls are refused: put the key that sealed it back into the key ring, or connect the auth server again',
    fields: { key: keyId },
  }),
  signing_key_closed: ({ domain, kind, selector }) => ({
    level: 'error',
    text: 'the key ring cannot open a key that signs mail: mail from this domain waits. Add the missing key to the ring, or remove this one with "postern domain remove-key"',
    fields: { domain, selector },
    kind: `${kind} ${domain}`,
  }),
  transport_closed: ({ kind, reason, transport }) => ({
    level: 'error',
    text: `mail of the apps that use this transport waits: ${reason}`,
    fields: { transport },
    kind: `${kind} ${transport}`,
  }),
  provider_call_refused: ({ kind, provider, reason, requestId }) => ({
    level: 'warn',
    text: reason ?? 'a call of a mail provider did not prove itself: compare its secret with POSTERN_REPORTS_KEYS',
    fields: { requestId, provider },
    kind,
  }),
  webhook_tried: webhookLine,
  alert_tried: ({ condition, isTaken, result }) => {
    const text = isTaken ? 'an alert was sent' : 'an alert was not accepted by POSTERN_ALERTS_URL; it is sent again'
    return { level: isTaken ? 'info' : 'warn', text, fields: { condition, result } }
  },
  webhook_lost: ({ appId, emailId, event }) => ({
    level: 'warn',
    text: 'a webhook was lost: the app already has 1,000 waiting, or the store failed',
    fields: { app: appId, email: emailId, event },
    kind: 'webhook lost',
  }),
  webhook_secret_closed: ({ appId }) => ({
    level: 'error',
    text: 'the secret of an app’s webhooks cannot be opened, so none is sent: put the key that sealed it back into the key ring, or make another secret with "postern app-webhook secret"',
    fields: { app: appId },
  }),
  bug: ({ kind, doing, error, requestId }) => {
    const lack = describeLack(error)
    const fields = { err: error, ...(requestId !== undefined && { requestId }) }
    return { level: 'error', text: lack ?? `a bug, while ${doing}`, fields, ...(lack !== null && { kind }) }
  },
}

export function writeLines(event: PosternEvent): readonly Line[] {
  // A cast, because the compiler does not see that the function of a kind takes the events of that kind.
  const made = (lines[event.kind] as (event: PosternEvent) => Line | readonly Line[])(event)
  return 'text' in made ? [made] : made
}

function requestLine(event: RequestAnswered): Line {
  const text = event.status === 202 ? 'an email was accepted' : 'a request was refused'
  return { level: 'info', text, fields: () => requestFields(event), kind: `request ${event.code}` }
}

function signInLine({ kind, method, requestId, result }: ConsoleSignIn): Line {
  const fields = { requestId, method }
  if (result === 'signed_in') return { level: 'info', text: 'somebody signed in to the console', fields }
  return { level: 'warn', text: 'a sign-in to the console was refused', fields, kind }
}

function requestFields(event: RequestAnswered): Fields {
  const { requestId, traceId, status, code, appId, keyId, tookMs } = event
  return {
    requestId,
    ...(traceId !== null && { traceId }),
    status,
    code,
    ...(appId !== null && { app: appId }),
    ...(keyId !== null && { key: keyId }),
    ...(event.source !== 'api' && { source: event.source, message: event.message }),
    ...(event.status === 202 ? { email: event.emailId } : refusalFields(event)),
    tookMs: Math.round(tookMs),
  }
}

const refusalFields = ({ issues, origin }: RequestRefused): Fields => ({
  ...(issues.length > 0 && { issues }),
  ...(origin !== null && { origin }),
})

function operationLine({ requestId, operation, actor, status, code }: OperationAnswered): Line {
  const fields = { requestId, operation, actor, status, ...(code === null ? {} : { code }) }
  const text = code === null ? 'an operation was done' : 'an operation was refused'
  return { level: 'info', text, fields, kind: `operation ${code ?? 'done'}` }
}

const attemptTexts = {
  delivered: 'an email was delivered',
  deferred: 'an email was deferred',
  failed: 'an email failed',
  expired: "an email's link expired",
  cancelled: 'an email was cancelled',
  simulated: 'the end of an email was simulated',
  unattempted: 'an email was not tried',
}

function attemptLine(event: AttemptRecorded): Line {
  const { kind } = event.outcome
  // A relay that is down is one line (`relay_changed`), not one for each email that waits.
  const level = kind === 'unattempted' ? 'debug' : 'info'
  return { level, text: attemptTexts[kind], fields: () => attemptFields(event), kind: `attempt ${kind}` }
}

function attemptFields(event: AttemptRecorded): Fields {
  const { emailId, appId, type, attempt, outcome, sinceAcceptedMs, tookMs, traceId } = event
  const { kind, reply, ...rest } = 'reply' in outcome ? outcome : { ...outcome, reply: null }
  return {
    email: emailId,
    app: appId,
    type,
    attempt,
    ...(traceId !== null && { traceId }),
    outcome: kind,
    ...rest,
    ...(reply === null ? {} : { reply: reply.text }),
    sinceAcceptedMs: Math.round(sinceAcceptedMs),
    tookMs: Math.round(tookMs),
  }
}

function reportLine({ source, finding, cause, result, emailId, appId }: ReportReceived): Line {
  const fields = {
    ...(emailId !== null && { email: emailId }),
    ...(appId !== null && { app: appId }),
    source,
    finding,
    ...(cause !== null && { cause }),
    result,
  }
  const text = result === 'recorded' ? 'a report about an email was recorded' : 'a report was not recorded'
  return { level: 'info', text, fields, kind: `reports ${result}` }
}

const asked = {
  request: 'to queue an email',
  link: 'to open a hosted link',
  operation: 'to run an operation',
  page: 'for a page of the console',
}
