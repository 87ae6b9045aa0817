/**
 * One attempt at one email, as one line: still alive? → render → compose → submit → what came of
 * it. The store counted the attempt when it was claimed, so whatever happens here, also a crash,
 * the attempts are never fewer than the relay may have seen.
 */
import type { App } from '../domain/app/app.ts'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { nextAttemptMs, retryForMs } from '../domain/delivery/retry-schedule.ts'
import { classifyFailure, type SmtpFailure } from '../domain/delivery/smtp-reply.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { Claim } from '../store/store.ts'
import { renderTemplate } from '../templates/emails/render-email.ts'
import { composeMessage } from './message/compose-message.ts'
import type { Relay } from './relay/relay.ts'
import type { Submission } from './relay/smtp/smtp-session.ts'

export type DeliverDeps = {
  /** In the order in which they are tried. */
  readonly relays: readonly Relay[]
  readonly random: () => number
}

/** Times on the clock of `performance.now()`; the link's life is counted from the claim. */
export type Attempt = {
  readonly claim: Claim
  readonly app: App
  readonly claimedAtMs: number
  /** Moves on with each renewal. */
  leasedUntilMs: number
}

const unavailableWaitMs = 1000

export async function deliver(deps: DeliverDeps, attempt: Attempt): Promise<DeliveryOutcome> {
  const { claim } = attempt
  const deadlineMs = attempt.claimedAtMs + claim.lifeLeftMs
  if (performance.now() >= deadlineMs) return { kind: 'expired' }
  if (claim.ageMs >= retryForMs) return exhausted('-', 'no attempt was possible for 48 hours')
  const message = prepare(attempt, deadlineMs)
  const clearance = { deadlineMs, isLeaseValid: () => performance.now() < attempt.leasedUntilMs }
  let unavailable = 'no relay is available'
  for (const relay of deps.relays) {
    if (relay.free() <= 0) continue
    const submission = await relay.submit(message, clearance, {
      id: claim.emailId,
      app: attempt.app.settings.name,
      type: claim.type,
      url: claim.content.url,
      expiresAt: claim.expiresAt,
    })
    const outcome = judge(deps, { attempt, relay, submission })
    if (outcome.kind !== 'unattempted' || submission.kind === 'stopped') return outcome
    unavailable = outcome.reply
  }
  const probeInMs = Math.min(...deps.relays.map((relay) => relay.probeInMs()))
  return {
    kind: 'unattempted',
    reply: unavailable,
    waitMs: Math.max(unavailableWaitMs, Math.ceil(probeInMs)),
  }
}

function prepare({ claim, app }: Attempt, deadlineMs: number) {
  const { settings, slug } = app
  const lifeLeftMs = deadlineMs - performance.now()
  const rendered = renderTemplate({ ...claim, app: settings, lifeLeftMs })
  const from = (settings.envelopeFrom ?? settings.from.address) as EmailAddress
  return { from, to: claim.content.to, bytes: composeMessage({ claim, app: settings, slug, rendered }) }
}

const exhausted = (relay: string, reply: string): DeliveryOutcome => ({
  kind: 'failed',
  reason: 'retries_exhausted',
  relay,
  reply,
})

type Submitted = { attempt: Attempt; relay: Relay; submission: Submission }

function judge(deps: DeliverDeps, { attempt, relay, submission }: Submitted): DeliveryOutcome {
  if (submission.kind === 'expired') return submission
  if (submission.kind === 'stopped') return { kind: 'unattempted', reply: submission.why, waitMs: 0 }
  if (submission.kind === 'accepted') return { kind: 'delivered', reply: submission.reply, relay: relay.name }
  const { failure } = submission
  const verdict = classifyFailure(failure)
  const reply = failure.reply ?? failure.fault
  if (verdict.scope === 'relay') return { kind: 'unattempted', reply: `${relay.name}: ${reply}`, waitMs: 0 }
  if (verdict.class === 'permanent') {
    return { kind: 'failed', reason: 'refused_by_relay', reply, relay: relay.name }
  }
  return defer(deps, attempt, { relay: relay.name, failure, ambiguous: verdict.ambiguous })
}

type Trouble = { relay: string; failure: SmtpFailure; ambiguous: boolean }

function defer(deps: DeliverDeps, { claim, claimedAtMs }: Attempt, trouble: Trouble): DeliveryOutcome {
  const reply = trouble.failure.reply ?? trouble.failure.fault
  const sinceMs = performance.now() - claimedAtMs
  const waitMs = nextAttemptMs({
    attempts: claim.attempt,
    ageMs: claim.ageMs + sinceMs,
    lifeLeftMs: claim.lifeLeftMs - sinceMs,
    random: deps.random(),
  })
  if (waitMs === null) return exhausted(trouble.relay, reply)
  return { kind: 'deferred', reply, relay: trouble.relay, ambiguous: trouble.ambiguous, waitMs }
}
