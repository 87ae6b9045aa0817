/**
 * Counters and histograms of the event stream, each declared once: the series that it has from the start,
 * because `increase()` of Prometheus misses the first event of a new series, and the events that it counts.
 *
 *     postern_app_webhooks_total: metric({
 *       help: 'Webhooks to apps',
 *       series: [{ result: 'sent' }, { result: 'lost' }],
 *       on: {
 *         webhook_tried: ({ outcome }, count) => count({ result: outcome }),
 *         webhook_lost: (_, count) => count({ result: 'lost' }),
 *       },
 *     }),
 */
import { Counter, Histogram, type Registry } from 'prom-client'
import { causeOf, failureCauses } from '../domain/delivery/failure-cause.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { reportKinds } from '../domain/delivery/report.ts'
import { cancelReasons, endStates, failureReasons } from '../domain/delivery/states.ts'
import { transportOf } from '../domain/delivery/transport.ts'
import { signInMethods } from '../domain/operator/sign-in.ts'
import { refusals } from '../domain/request/rejection.ts'
import { eventServices, reportSources } from '../services/services.ts'
import { linkResults, type PosternEvent, requestSources, signInResults, webhookOutcomes } from './events.ts'

type Kind = PosternEvent['kind']
type Labels<Name extends string> = Readonly<Record<Name, string | number>>
/** Adds a value to a counter (1 unless given), or to a histogram. */
type Count<Name extends string> = (labels: Labels<Name>, value?: number) => void

type Parts<Name extends string> = {
  readonly help: string
  readonly series?: readonly Labels<Name>[]
  /** The series of a relay, made when it is added. */
  readonly relaySeries?: (relay: string) => readonly Labels<Name>[]
  /** Those of a histogram. */
  readonly buckets?: number[]
  readonly on: {
    readonly [K in Kind]?: (event: Extract<PosternEvent, { readonly kind: K }>, count: Count<Name>) => void
  }
}

export type Counters = {
  readonly observe: (event: PosternEvent) => void
  readonly addRelay: (relay: string) => void
}
type Metric = (name: string, registry: Registry) => Counters

const metric =
  <Name extends string = never>({ help, series = [], relaySeries = () => [], buckets, on }: Parts<Name>): Metric =>
  (name, registry) => {
    const labelNames = Object.keys(series[0] ?? relaySeries('')[0] ?? {}) as Name[]
    const shape = { name, help, labelNames, registers: [registry] }
    const made = buckets === undefined ? new Counter(shape) : new Histogram({ ...shape, buckets })
    const start = (labels: Labels<Name>) => (made instanceof Counter ? made.inc(labels, 0) : made.zero(labels))
    const count: Count<Name> = (labels, value = 1) =>
      made instanceof Counter ? made.inc(labels, value) : made.observe(labels, value)
    series.forEach(start)
    return {
      // A cast, because the compiler does not see that the function of a kind takes the events of that kind.
      observe: (event) =>
        (on[event.kind] as ((event: PosternEvent, add: typeof count) => void) | undefined)?.(event, count),
      addRelay: (relay) => relaySeries(relay).forEach(start),
    }
  }

/** From a millisecond to seconds: what this machine does. */
const shortBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** Also what a relay lets us wait for. */
const longBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400]
const sizeBuckets = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]

/** The statuses of the answers to requests, with their codes. */
const answers = [
  ...['accepted', 'replayed'].map((code) => ({ status: 202, code })),
  ...Object.entries(refusals).map(([code, { status }]) => ({ status, code })),
]
const statuses = [...new Set(answers.map(({ status }) => status))]

/** The causes of an outcome or a report. */
const causesOf = (kind: string): readonly string[] =>
  ['deferred', 'failed', 'bounced'].includes(kind) ? failureCauses : ['']

const endReasons: Readonly<Record<(typeof endStates)[number], readonly string[]>> = {
  failed: failureReasons,
  cancelled: cancelReasons,
  delivered: [''],
  expired: [''],
  suppressed: [''],
}

/** Those of transports, of which there may be hundreds, count as one. */
const toLabel = (relay: string): string => (transportOf(relay) === null ? relay : 'transports')

/** Empty where no relay was used. */
const relayOf = (outcome: DeliveryOutcome): string => ('relay' in outcome ? toLabel(outcome.relay ?? '') : '')

const causeOfOutcome = (outcome: DeliveryOutcome): string =>
  outcome.kind === 'deferred' || outcome.kind === 'failed' ? causeOf(outcome.reply) : ''

/** Without a relay nothing is delivered; at a relay nothing expires or is cancelled. */
const attemptSeries = (relay: string) =>
  [...(relay === '' ? ['expired', 'cancelled'] : ['delivered']), 'unattempted', 'deferred', 'failed'].flatMap(
    (outcome) => causesOf(outcome).map((cause) => ({ outcome, relay, cause })),
  )

const metrics: Readonly<Record<string, Metric>> = {
  postern_requests_total: metric({
    help:
      'Answers to requests of apps (source api) and auth servers; code is accepted, replayed or that of ' +
      'the refusal',
    series: requestSources.flatMap((source) => answers.map((answer) => ({ source, ...answer }))),
    on: { request_answered: ({ source, status, code }, count) => count({ source, status, code }) },
  }),
  postern_request_duration_seconds: metric({
    help: 'From the complete request of a POST /v1/email to its answer',
    series: statuses.map((status) => ({ status })),
    buckets: shortBuckets,
    on: { request_answered: ({ status, tookMs }, count) => count({ status }, tookMs / 1000) },
  }),
  postern_emails_language_total: metric({
    help:
      'Accepted emails by the language that the request asked for; unknown if Postern has none of those, ' +
      'none without one',
    series: ['none', 'unknown'].map((language) => ({ language })),
    on: {
      request_answered: (event, count) => {
        if (event.code === 'accepted') count({ language: event.language })
      },
    },
  }),
  postern_hosted_link_views_total: metric({
    help:
      'Hosted links that were opened, whose button was pressed, that had expired, or that are unknown. Link ' +
      'scanners open links too, but only people press the button',
    series: linkResults.map((result) => ({ result })),
    on: { link_viewed: ({ result }, count) => count({ result }) },
  }),
  postern_console_sign_ins_total: metric({
    help: 'Attempts to sign in to the console that succeeded or were refused',
    series: signInMethods.flatMap((method) => signInResults.map((result) => ({ method, result }))),
    on: { console_sign_in: ({ method, result }, count) => count({ method, result }) },
  }),
  postern_internal_errors_total: metric({
    help: 'Unexpected errors (bugs); each has a line in the log',
    on: { bug: (_, count) => count({}) },
  }),
  postern_attempts_total: metric({
    help:
      'Recorded outcomes of delivery attempts, unattempted included (no relay was available); the cause of ' +
      'those deferred or failed (unknown for mail APIs)',
    series: attemptSeries(''),
    relaySeries: attemptSeries,
    on: {
      attempt_recorded: ({ outcome }, count) =>
        count({ outcome: outcome.kind, relay: relayOf(outcome), cause: causeOfOutcome(outcome) }),
    },
  }),
  postern_attempt_duration_seconds: metric({
    help: 'Duration of an attempt at a relay, with the wait for its rate',
    relaySeries: (relay) => [{ relay }],
    buckets: longBuckets,
    on: {
      attempt_recorded: ({ outcome, tookMs }, count) => {
        const relay = relayOf(outcome)
        if (relay !== '' && outcome.kind !== 'unattempted') count({ relay }, tookMs / 1000)
      },
    },
  }),
  postern_attempts_ambiguous_total: metric({
    help: 'Attempts after which the relay may or may not have the message, so that it may arrive twice',
    relaySeries: (relay) => [{ relay }],
    on: {
      attempt_recorded: ({ outcome }, count) => {
        if (outcome.kind === 'deferred' && outcome.ambiguous) count({ relay: relayOf(outcome) })
      },
    },
  }),
  postern_emails_finished_total: metric({
    help:
      'Emails by final state and reason, counted by the process that ended them; not those that a command on ' +
      'the server cancelled',
    series: endStates.flatMap((state) => endReasons[state].map((reason) => ({ state, reason }))),
    on: {
      attempt_recorded: ({ outcome }, count) => {
        if (outcome.kind === 'deferred' || outcome.kind === 'unattempted' || outcome.kind === 'simulated') return
        count({ state: outcome.kind, reason: 'reason' in outcome ? outcome.reason : '' })
      },
      emails_ended: ({ ended }, count) => {
        for (const { state, reason } of ended) count({ state, reason: reason ?? '' })
      },
    },
  }),
  postern_accept_to_delivered_seconds: metric({
    help: 'From acceptance to the 250 of the relay, or to the answer of a mail API that accepts the email',
    buckets: longBuckets,
    on: {
      attempt_recorded: ({ outcome, sinceAcceptedMs }, count) => {
        if (outcome.kind === 'delivered') count({}, Math.max(0, sinceAcceptedMs) / 1000)
      },
    },
  }),
  postern_reports_total: metric({
    help:
      'Recorded reports about emails: their source (mail, read, or a provider), what they say ' +
      `(${reportKinds.join(', ')}), and the cause of a bounce`,
    series: reportSources.flatMap((source) =>
      reportKinds.flatMap((kind) => causesOf(kind).map((cause) => ({ source, kind, cause }))),
    ),
    on: {
      report_received: ({ source, finding, cause, result }, count) => {
        if (result === 'recorded') count({ source, kind: finding, cause: cause ?? '' })
      },
    },
  }),
  postern_reports_unmatched_total: metric({
    help: 'Reports that name no email, or one without a record, or that came too late',
    series: reportSources.map((source) => ({ source })),
    on: {
      report_received: ({ source, result }, count) => {
        if (!['recorded', 'already', 'waiting'].includes(result)) count({ source })
      },
    },
  }),
  postern_reports_refused_total: metric({
    help: 'Calls to the reports listener that did not prove themselves; the log has a line for each',
    series: eventServices.map(({ name }) => ({ source: name })),
    on: { provider_call_refused: ({ provider }, count) => count({ source: provider }) },
  }),
  postern_app_webhooks_total: metric({
    help:
      'Webhooks to apps: sent, failed (they are tried again), given up, or lost because too many wait or the ' +
      'store failed',
    series: [...webhookOutcomes, 'lost'].map((result) => ({ result })),
    on: {
      webhook_tried: ({ outcome }, count) => count({ result: outcome }),
      webhook_lost: (_, count) => count({ result: 'lost' }),
    },
  }),
  postern_leases_lost_total: metric({
    help: 'Leases that this process took back, because a worker died or hung; the email may arrive twice',
    on: { leases_taken_back: ({ lost }, count) => count({}, lost.length) },
  }),
  postern_claim_seconds: metric({
    help: 'Duration of a claim of due mail, with its pause of up to 8 ms on PostgreSQL',
    buckets: shortBuckets,
    on: { mail_claimed: ({ tookMs }, count) => count({}, tookMs / 1000) },
  }),
  postern_claimed_emails: metric({
    help: 'Emails that a claim got',
    buckets: sizeBuckets,
    on: { mail_claimed: (event, count) => count({}, event.count) },
  }),
  postern_store_group_seconds: metric({
    help: 'Duration of the transaction that requests and outcomes share, commit included',
    buckets: shortBuckets,
    on: { group_written: ({ tookMs }, count) => count({}, tookMs / 1000) },
  }),
  postern_store_group_calls: metric({
    help: 'Requests and outcomes that shared one transaction',
    buckets: sizeBuckets,
    on: { group_written: ({ calls }, count) => count({}, calls) },
  }),
  postern_store_failures_total: metric({
    help: 'Work that the store could not do: request, link, operation, page, or delivery (once for an outage)',
    series: ['request', 'link', 'operation', 'page', 'delivery'].map((work) => ({ work })),
    on: {
      store_unavailable: ({ work }, count) => count({ work }),
      store_write_failed: (_, count) => count({ work: 'delivery' }),
    },
  }),
}

export function addCounters(registry: Registry): Counters {
  const known = new Set<string>()
  const made = Object.entries(metrics).map(([name, make]) => make(name, registry))
  return {
    observe: (event) => {
      for (const { observe } of made) observe(event)
    },
    addRelay: (relay) => {
      const label = toLabel(relay)
      if (known.has(label)) return
      known.add(label)
      for (const { addRelay } of made) addRelay(label)
    },
  }
}
