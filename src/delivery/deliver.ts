/**
 * One attempt at one email: check that the link is alive, compose, submit, and turn the result into
 * an outcome. The store counted the attempt when the email was claimed, and takes the count
 * back if the lease is lost or the attempt was not made.
 */
import type { App } from '../domain/app/app.ts'
import { chooseSenders } from '../domain/app/envelope.ts'
import { hasDomain } from '../domain/app/sender-domains.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import { retryForHours, retryForMs } from '../domain/bounds.ts'
import { isAboutAccount } from '../domain/delivery/blame.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { toBounceAddress } from '../domain/delivery/reference.ts'
import { noReply, type Reply } from '../domain/delivery/reply.ts'
import { isReservedDomain } from '../domain/delivery/reserved-domain.ts'
import { nextAttemptMs } from '../domain/delivery/retry-schedule.ts'
import { dayMs, minuteMs } from '../domain/duration.ts'
import { type Moment, sinceMs } from '../domain/moment.ts'
import { type EmailAddress, readDomain } from '../domain/request/email-address.ts'
import { describeOutcome, describeReply, type SpanResult, type Trace, traceAttempt } from '../observe/tracing.ts'
import { momentNow } from '../store/shared/clock.ts'
import { type Claim, leaseMs, type Store } from '../store/store.ts'
import { renderEmail } from '../templates/emails/render-email.ts'
import {
  attemptedAt,
  formatDate,
  listMarks,
  type MessageComposer,
  type MessageInput,
} from './message/compose-message.ts'
import { type Signer, signMessage } from './message/sign-message.ts'
import type { Signers } from './message/signers.ts'
import { inOrder, type Message, type MessageDetails, type Relay, type Submission } from './relay/relay.ts'

export type DeliverDeps = {
  /** In the order in which they are tried. */
  readonly relays: readonly Relay[]
  readonly random: () => number
  readonly composer: MessageComposer
  readonly makeReference: Store['makeReference']
  /** Each email gets a bounce address of its own from it; null for none. */
  readonly bounceAddress: EmailAddress | null
  /** Null where no relay keeps the message as it is, so that no signature would hold. */
  readonly signing: { readonly signers: Pick<Signers, 'find'>; readonly relayDates: boolean } | null
}

export type Attempt = {
  readonly claim: Claim
  readonly app: App
  /** The life of the link is counted from here. */
  readonly claimedAt: Moment
  /** When the lease began, or was renewed; null once it is lost. */
  leasedAt: Moment | null
  /** False once the worker may count as dead, and all its leases as lost. */
  readonly areLeasesValid: () => boolean
}

/**
 * Whether the email may still be handed over by this lease. If the machine was suspended, or its clock set
 * forward, so that the link may have expired, the lease counts as lost: the email is given back, and the
 * store's clock decides.
 */
export const isLeaseValid = (
  { areLeasesValid, claim, claimedAt, leasedAt }: Attempt,
  now: Moment = momentNow(),
): boolean =>
  leasedAt !== null &&
  sinceMs(leasedAt, now) < leaseMs &&
  sinceMs(claimedAt, now) < claim.lifeLeftMs &&
  areLeasesValid()

const unavailableWaitMs = 1000
/**
 * After a relay refused everything in reply to one email: if it was about this email after all, the others
 * are tried before it is again, so that it cannot hold them up. At most half of what its link has left.
 */
const refusedWaitMs = 30_000

export async function deliver(deps: DeliverDeps, attempt: Attempt): Promise<DeliveryOutcome> {
  const trace = traceAttempt(attempt.claim)
  try {
    const outcome = await attemptDelivery(deps, attempt, trace)
    trace.end(() => describeOutcome(outcome))
    return outcome
  } catch (error) {
    trace.end(() => ({ failed: true }))
    throw error
  }
}

async function attemptDelivery(deps: DeliverDeps, attempt: Attempt, trace: Trace): Promise<DeliveryOutcome> {
  const { claim } = attempt
  const deadlineMs = attempt.claimedAt.monotonicMs + claim.lifeLeftMs
  if (performance.now() >= deadlineMs) return { kind: 'expired' }
  if (claim.ageMs >= retryForMs) return exhausted(null, noReply(`${retryForHours} hours have passed`))
  if (!isLeaseValid(attempt))
    return { kind: 'unattempted', relay: null, reply: noReply('the lease was lost'), waitMs: 0 }
  const finding = findSigners(deps, attempt.app.settings)
  const found = finding instanceof Promise ? await finding : finding
  if ('held' in found) return { kind: 'unattempted', relay: null, reply: noReply(found.held), waitMs: found.waitMs }
  const unsigned = trace.run('render', () => prepare(deps, attempt, deadlineMs))
  const message =
    found.signers.length === 0
      ? unsigned
      : await trace.wait('sign', () => sign(deps, unsigned, { claim, signers: found.signers }))
  const clearance = { deadlineMs, isLeaseValid: () => isLeaseValid(attempt) }
  let last: { relay: string | null; reply: Reply } = {
    relay: null,
    reply: noReply('no relay is available'),
  }
  let leastWaitMs = 0
  const relays = isReservedDomain(message.to) ? deps.relays.filter((relay) => relay.takesReserved) : deps.relays
  if (relays.length === 0) return { kind: 'cancelled', reason: 'reserved_domain' }
  const refusals: Refusal[] = []
  let isBusy = false
  for (const relay of inOrder(relays)) {
    if (relay.free() <= 0) {
      isBusy ||= relay.isAvailable()
      continue
    }
    const submit = () => relay.submit(message, clearance)
    const submission = await trace.wait('submit', submit, (result) => describeSubmission(relay, result))
    if (submission.kind === 'failed' && submission.failureClass.scope === 'unclear') {
      refusals.push({ ...submission, relay: relay.name })
      continue
    }
    const outcome = toOutcome(deps, { attempt, relay, submission })
    if (outcome.kind !== 'unattempted' || submission.kind === 'stopped') return outcome
    last = outcome
    if (submission.kind === 'failed' && (submission.stage === 'sender' || submission.stage === 'recipient'))
      leastWaitMs = Math.min(refusedWaitMs, Math.ceil((deadlineMs - performance.now()) / 2))
  }
  const [first, ...others] = refusals
  if (first !== undefined) return concludeRefusals(deps, attempt, { relays, refusals: [first, ...others], isBusy })
  const probeInMs = Math.min(...relays.map((relay) => relay.probeInMs()))
  const waitMs = Math.max(unavailableWaitMs, leastWaitMs, Math.ceil(probeInMs))
  return { kind: 'unattempted', relay: last.relay, reply: last.reply, waitMs }
}

/**
 * The keys of a domain sign only for the apps that have the domain. Settings are checked when they are set;
 * if an app has lost its domain all the same, its mail waits, because the relay might sign it.
 */
function findSigners({ signing }: DeliverDeps, settings: AppSettings): ReturnType<Signers['find']> {
  const domain = readDomain(settings.from.address as EmailAddress)
  if (!hasDomain(settings, domain))
    return { held: `${domain} is not a sender domain of the app`, waitMs: foreignDomainWaitMs }
  return signing?.signers.find(domain) ?? { signers: [] }
}

/** An operator has to give the domain to the app, or change its sender. */
const foreignDomainWaitMs = 5 * minuteMs

/** A signature outlives its link by so long: mail servers retry for up to five days. */
const signedForMs = 7 * dayMs

async function sign(
  { signing }: DeliverDeps,
  message: Message,
  { claim, signers }: { readonly claim: Claim; readonly signers: readonly Signer[] },
): Promise<Message> {
  const signedAt = Math.floor(attemptedAt(claim) / 1000)
  const relayDates = signing?.relayDates === true
  const expiresAt = Math.floor((claim.expiresAt + signedForMs) / 1000)
  return { ...message, bytes: await signMessage(message.bytes, signers, { signedAt, expiresAt, relayDates }) }
}

function describeSubmission({ name }: Relay, submission: Submission): SpanResult {
  switch (submission.kind) {
    case 'accepted':
      return describeReply({ relay: name, reply: submission.reply })
    case 'failed':
      return describeReply({ relay: name, ...submission, failed: true })
    default:
      return describeReply({ relay: name, failed: true })
  }
}

function prepare(deps: DeliverDeps, { claim, app }: Attempt, deadlineMs: number): Message {
  const { composer, bounceAddress } = deps
  const reference = deps.makeReference(claim.emailId)
  const input = { claim, app, reference, lifeLeftMs: deadlineMs - performance.now() }
  const { from, bounceTo } = chooseSenders(app.settings, bounceAddress)
  return {
    from,
    bounceTo: bounceTo && toBounceAddress(bounceTo, reference),
    to: claim.content.to,
    id: claim.emailId,
    attempt: claim.attempt,
    reference,
    content: claim.content,
    bytes: composer.compose(input),
    describe: () => describeMessage(input),
  }
}

type DescribedMessage = Pick<Attempt, 'claim' | 'app'> & Pick<MessageInput, 'reference' | 'lifeLeftMs'>

function describeMessage({ claim, app, reference, lifeLeftMs }: DescribedMessage): MessageDetails {
  const { settings, slug } = app
  const { emailId: id, type } = claim
  const rendered = renderEmail({ ...claim, app: settings, lifeLeftMs })
  return {
    ...rendered,
    id,
    app: settings.name,
    slug,
    from: settings.from,
    replyTo: settings.replyTo ?? null,
    headers: listMarks({ reference, expires: formatDate(claim.expiresAt), type, slug, language: rendered.language }),
    type,
    url: claim.content.url,
    code: claim.content.code ?? null,
    expiresAt: claim.expiresAt,
  }
}

const exhausted = (relay: string | null, reply: Reply): DeliveryOutcome => ({
  kind: 'failed',
  reason: 'retries_exhausted',
  relay,
  reply,
})

/** An unclear refusal (`FailureClass`). */
type Refusal = Extract<Submission, { readonly kind: 'failed' }> & { readonly relay: string }

type Refused = {
  readonly relays: readonly Relay[]
  readonly refusals: readonly [Refusal, ...Refusal[]]
  /** Whether an available relay had no room for the email. */
  readonly isBusy: boolean
}

/**
 * A refusal for good is believed if all relays gave one, and one of them takes other mail. Several relays are
 * also believed without that, unless they speak of our account: it may be the same. Until then, it may be the
 * relay's trouble, and the email waits.
 */
function concludeRefusals(deps: DeliverDeps, attempt: Attempt, { relays, refusals, isBusy }: Refused): DeliveryOutcome {
  const temporary = refusals.find(({ failureClass }) => !failureClass.permanent)
  const { relay, reply, failureClass } = temporary ?? refusals[0]
  const isByAll = temporary === undefined && refusals.length === relays.length
  const isOfEmail = refusals.length > 1 && refusals.some((refusal) => !isAboutAccount(refusal.reply))
  if (isByAll && (isOfEmail || refusals.some(({ takesOthers }) => takesOthers)))
    return { kind: 'failed', reason: 'refused_by_relay', relay, reply }
  return defer(deps, attempt, { relay, reply, ambiguous: false, isSoon: isBusy || failureClass.slowDown !== null })
}

type SubmittedAttempt = { attempt: Attempt; relay: Relay; submission: Submission }

function toOutcome(deps: DeliverDeps, { attempt, relay, submission }: SubmittedAttempt): DeliveryOutcome {
  const { name } = relay
  switch (submission.kind) {
    case 'expired':
      return submission
    case 'simulated':
      return { ...submission, relay: name }
    case 'stopped':
      return { kind: 'unattempted', relay: null, reply: noReply(submission.why), waitMs: 0 }
    case 'accepted':
      return { kind: 'delivered', relay: name, reply: submission.reply }
    case 'failed': {
      const { failureClass, reply } = submission
      if (failureClass.scope === 'relay') return { kind: 'unattempted', relay: name, reply, waitMs: 0 }
      if (failureClass.permanent) return { kind: 'failed', reason: 'refused_by_relay', relay: name, reply }
      return defer(deps, attempt, { relay: name, reply, ambiguous: failureClass.ambiguous, isSoon: false })
    }
    default:
      return submission satisfies never
  }
}

type TransientFailure = {
  readonly relay: string
  readonly reply: Reply
  readonly ambiguous: boolean
  /** Whether the relay asked to slow down, or another one was busy. */
  readonly isSoon: boolean
}

function defer(deps: DeliverDeps, { claim, claimedAt }: Attempt, failure: TransientFailure): DeliveryOutcome {
  const { isSoon, ...transient } = failure
  const heldMs = performance.now() - claimedAt.monotonicMs
  const waitMs = nextAttemptMs({
    attempts: claim.attempt,
    ageMs: claim.ageMs + heldMs,
    lifeLeftMs: claim.lifeLeftMs - heldMs,
    random: deps.random(),
    isSoon,
  })
  if (waitMs === null) return exhausted(transient.relay, transient.reply)
  return { kind: 'deferred', ...transient, waitMs }
}
