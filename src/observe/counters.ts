/**
 * Counters and histograms of the event stream. The series of each are made at the start: `increase()` of
 * Prometheus misses the first event of a series that begins with it.
 */
import { Counter, Histogram, type Registry } from 'prom-client'
import { failureCauses, findCause } from '../domain/delivery/failure-cause.ts'
import { feedbackKinds } from '../domain/delivery/feedback.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { cancelReasons, endStates, failureReasons } from '../domain/delivery/states.ts'
import { signInMethods } from '../domain/operator/sign-in.ts'
import { refusals } from '../domain/request/rejection.ts'
import { eventServices, feedbackSources } from '../services/services.ts'
import {
  type AttemptRecorded,
  linkResults,
  type PosternEvent,
  requestSources,
  signInResults,
  webhookOutcomes,
} from './events.ts'

/** From a millisecond to seconds: what this machine does. */
const shortBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** Also what a relay lets us wait for. */
const longBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const sizeBuckets = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]

export type Counters = {
  readonly observe: (event: PosternEvent) => void
  readonly addRelay: (relay: string) => void
}

export function addCounters(registry: Registry): Counters {
  const make = newMakers(registry)
  const all = { ...newRequestCounters(make), ...newDeliveryCounters(make), ...newStoreCounters(make) }
  startRequests(all)
  startDelivery(all)
  startAttempts(all, '')
  for (const work of failedWork) all.storeFailures.inc({ work }, 0)
  return { observe: (event) => count(all, event), addRelay: (relay) => startAttempts(all, relay) }
}

type Makers = ReturnType<typeof newMakers>
type Instruments = ReturnType<typeof newRequestCounters> &
  ReturnType<typeof newDeliveryCounters> &
  ReturnType<typeof newStoreCounters>

const newMakers = (registry: Registry) => ({
  counter: <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers: [registry] }),
  histogram: <Label extends string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
    new Histogram({ name, help, buckets, labelNames, registers: [registry] }),
})

const newRequestCounters = ({ counter, histogram }: Makers) => ({
  requests: counter(
    'postern_requests_total',
    'Answers to requests of apps (source api) and auth servers; code is accepted, replayed or that of the refusal',
    'source',
    'status',
    'code',
  ),
  requestSeconds: histogram(
    'postern_request_duration_seconds',
    'From the whole request of a POST /v1/email to its answer',
    shortBuckets,
    'status',
  ),
  languages: counter(
    'postern_emails_language_total',
    'Accepted emails by the language that the request asked for; unknown if Postern has none of those, none without one',
    'language',
  ),
  linkViews: counter(
    'postern_hosted_link_views_total',
    'Hosted links that were opened, whose button was pressed, that had expired, or that are unknown',
    'result',
  ),
  signIns: counter(
    'postern_console_sign_ins_total',
    'Attempts to sign in to the console that succeeded or were refused',
    'method',
    'result',
  ),
  errors: counter('postern_internal_errors_total', 'Errors that nobody expected; each has a line in the log'),
})

const newDeliveryCounters = ({ counter, histogram }: Makers) => ({
  attempts: counter(
    'postern_attempts_total',
    'Recorded outcomes of delivery attempts, unattempted included; cause of those deferred or failed',
    'outcome',
    'relay',
    'cause',
  ),
  attemptSeconds: histogram(
    'postern_attempt_duration_seconds',
    'Duration of an attempt at a relay, with the wait for its rate',
    longBuckets,
    'relay',
  ),
  ambiguous: counter(
    'postern_attempts_ambiguous_total',
    'Attempts after which the relay may or may not have the message, so that it may arrive twice',
    'relay',
  ),
  ended: counter(
    'postern_emails_finished_total',
    'Emails that ended in this process, by final state and reason; not those that a local command cancelled',
    'state',
    'reason',
  ),
  latency: histogram(
    'postern_accept_to_delivered_seconds',
    'From acceptance to the 250 of the relay',
    longBuckets,
  ),
  feedback: counter(
    'postern_feedback_total',
    'Reports about emails that were recorded, by the way they came, what they say, and the cause of a bounce',
    'source',
    'kind',
    'cause',
  ),
  feedbackUnmatched: counter(
    'postern_feedback_unmatched_total',
    'Reports that name no email, or one without a record, or that came too late',
    'source',
  ),
  callsRefused: counter(
    'postern_feedback_refused_total',
    'Calls to the feedback listener that did not prove themselves',
    'source',
  ),
  webhooks: counter(
    'postern_webhooks_total',
    'Webhooks that were sent, failed (they are tried again), given up, or lost',
    'result',
  ),
  lostLeases: counter(
    'postern_leases_lost_total',
    'Leases that this process took back, from dead workers or lapsed',
  ),
})

const newStoreCounters = ({ counter, histogram }: Makers) => ({
  claimSeconds: histogram('postern_claim_seconds', 'Duration of a claim of due mail', shortBuckets),
  claimedEmails: histogram('postern_claimed_emails', 'Emails that a claim got', sizeBuckets),
  groupSeconds: histogram(
    'postern_store_group_seconds',
    'Duration of the transaction of one group of calls, commit included',
    shortBuckets,
  ),
  groupCalls: histogram('postern_store_group_calls', 'Calls that shared one transaction', sizeBuckets),
  storeFailures: counter(
    'postern_store_failures_total',
    'Work that the store could not do: request, link, operation, page, or delivery (once for an outage)',
    'work',
  ),
})

const failedWork = ['request', 'link', 'operation', 'page', 'delivery']

function startRequests({ languages, requests, requestSeconds, linkViews, signIns }: Instruments): void {
  for (const language of ['none', 'unknown']) languages.inc({ language }, 0)
  for (const source of requestSources) {
    for (const code of ['accepted', 'replayed']) requests.inc({ source, status: 202, code }, 0)
    for (const [code, { status }] of Object.entries(refusals)) requests.inc({ source, status, code }, 0)
  }
  for (const status of new Set([202, ...Object.values(refusals).map((refusal) => refusal.status)]))
    requestSeconds.zero({ status })
  for (const result of linkResults) linkViews.inc({ result }, 0)
  for (const method of signInMethods) for (const result of signInResults) signIns.inc({ method, result }, 0)
}

function startDelivery(all: Instruments): void {
  const { callsRefused, ended, feedback, feedbackUnmatched, webhooks } = all
  for (const { name: source } of eventServices) callsRefused.inc({ source }, 0)
  for (const result of [...webhookOutcomes, 'lost']) webhooks.inc({ result }, 0)
  for (const source of feedbackSources) {
    feedbackUnmatched.inc({ source }, 0)
    for (const kind of feedbackKinds)
      for (const cause of kind === 'bounced' ? failureCauses : ['']) feedback.inc({ source, kind, cause }, 0)
  }
  const reasons = {
    failed: failureReasons,
    cancelled: cancelReasons,
    delivered: [''],
    expired: [''],
    suppressed: [''],
  }
  for (const state of endStates) for (const reason of reasons[state]) ended.inc({ state, reason }, 0)
}

/** `relay` is empty when none was used; such an attempt never ends as `delivered`. */
function startAttempts({ attempts, attemptSeconds, ambiguous }: Instruments, relay: string): void {
  for (const outcome of relay === '' ? ['expired', 'cancelled', 'unattempted'] : ['delivered', 'unattempted'])
    attempts.inc({ outcome, relay, cause: '' }, 0)
  for (const outcome of ['deferred', 'failed'])
    for (const cause of failureCauses) attempts.inc({ outcome, relay, cause }, 0)
  if (relay === '') return
  attemptSeconds.zero({ relay })
  ambiguous.inc({ relay }, 0)
}

function count(all: Instruments, event: PosternEvent): void {
  switch (event.kind) {
    case 'request_answered':
      all.requests.inc({ source: event.source, status: event.status, code: event.code })
      all.requestSeconds.observe({ status: event.status }, event.tookMs / 1000)
      if (event.code === 'accepted') all.languages.inc({ language: event.language })
      return
    case 'attempt_recorded':
      countAttempt(all, event)
      return
    case 'emails_ended':
      for (const { state, reason } of event.ended) all.ended.inc({ state, reason: reason ?? '' })
      return
    case 'feedback_received':
      if (event.result === 'recorded')
        all.feedback.inc({ source: event.source, kind: event.finding, cause: event.cause ?? '' })
      else if (event.result !== 'already' && event.result !== 'waiting')
        all.feedbackUnmatched.inc({ source: event.source })
      return
    case 'provider_call_refused':
      all.callsRefused.inc({ source: event.provider })
      return
    case 'webhook_tried':
      all.webhooks.inc({ result: event.outcome })
      return
    case 'webhook_lost':
      all.webhooks.inc({ result: 'lost' })
      return
    case 'leases_taken_back':
      all.lostLeases.inc(event.lost.length)
      return
    case 'mail_claimed':
      all.claimSeconds.observe(event.tookMs / 1000)
      all.claimedEmails.observe(event.count)
      return
    case 'group_written':
      all.groupSeconds.observe(event.tookMs / 1000)
      all.groupCalls.observe(event.calls)
      return
    case 'store_unavailable':
      all.storeFailures.inc({ work: event.work })
      return
    case 'store_write_failed':
      all.storeFailures.inc({ work: 'delivery' })
      return
    case 'console_sign_in':
      all.signIns.inc({ method: event.method, result: event.result })
      return
    case 'link_viewed':
      all.linkViews.inc({ result: event.result })
      return
    case 'bug':
      all.errors.inc()
      return
    default:
  }
}

function countAttempt(all: Instruments, { outcome, sinceAcceptedMs, tookMs }: AttemptRecorded): void {
  const relay = 'relay' in outcome ? (outcome.relay ?? '') : ''
  all.attempts.inc({ outcome: outcome.kind, relay, cause: causeLabel(outcome) })
  if (relay !== '' && outcome.kind !== 'unattempted') all.attemptSeconds.observe({ relay }, tookMs / 1000)
  if (outcome.kind === 'deferred' && outcome.ambiguous) all.ambiguous.inc({ relay })
  if (outcome.kind === 'delivered') all.latency.observe(Math.max(0, sinceAcceptedMs) / 1000)
  if (outcome.kind === 'deferred' || outcome.kind === 'unattempted') return
  all.ended.inc({ state: outcome.kind, reason: 'reason' in outcome ? outcome.reason : '' })
}

const causeLabel = (outcome: DeliveryOutcome): string =>
  outcome.kind === 'deferred' || outcome.kind === 'failed' ? findCause(outcome.reply) : ''
