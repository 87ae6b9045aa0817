/**
 * Suppressions: a recipient who gets no mail from an app for a while, because its mailbox does not exist,
 * because it complained, or because an operator said so. They begin short, grow with each strike, and end by
 * themselves.
 */
import { suppressionMemoryDays } from '../bounds.ts'
import { dayMs, hourMs } from '../duration.ts'
import { type EmailAddress, readDomain } from '../request/email-address.ts'
import { causeOf } from './failure-cause.ts'
import type { DeliveryOutcome } from './outcome.ts'
import type { Bounce, ReportFinding } from './report.ts'
import { type SuppressionReason, suppressionReasons } from './states.ts'

/** Times are milliseconds since 1970. */
export type SuppressionTerms = {
  readonly reason: SuppressionReason
  readonly strikes: number
  readonly until: number
  /** Invitations, which nobody asked for, are suppressed until then, if that is later. */
  readonly invitationsUntil: number
  /** From then on, the strikes no longer count. */
  readonly forgetAt: number
}

const ladderMs = [hourMs, dayMs, 7 * dayMs, 30 * dayMs] as const
const complaintStrikes = 2
const complaintInvitationsMs = 365 * dayMs
const forgetMs = suppressionMemoryDays * dayMs

/** Whether a bounce proves that the recipient's mailbox does not exist: a field says so, and no prose. */
const provesNoMailbox = ({ about, cause, permanent }: Bounce): boolean =>
  about === 'recipient' && permanent && cause === 'no_mailbox'

/**
 * Whether a relay refused an email for good, because the recipient's mailbox does not exist. Words alone are
 * not enough, nor is a vague code: "User unknown" is also said of a sender that the relay does not know.
 */
export const refusesMailbox = (outcome: DeliveryOutcome): outcome is Refused =>
  outcome.kind === 'failed' &&
  outcome.reason === 'refused_by_relay' &&
  outcome.reply.enhanced !== null &&
  !outcome.reply.enhanced.endsWith('.0') &&
  causeOf(outcome.reply) === 'no_mailbox'

type Refused = Extract<DeliveryOutcome, { readonly kind: 'failed' }>

/** The reason for which a report suppresses its recipient; null if it does not. */
export function suppressionBy(finding: ReportFinding): Exclude<SuppressionReason, 'operator'> | null {
  if (finding.kind === 'complained') return 'complaint'
  return finding.kind === 'bounced' && provesNoMailbox(finding) ? 'no_mailbox' : null
}

/** The terms after one more report. */
export function addStrike(
  known: SuppressionTerms | null,
  reason: Exclude<SuppressionReason, 'operator'>,
  nowMs: number,
): SuppressionTerms {
  const before = remember(known, nowMs)
  const strikes = (before?.strikes ?? 0) + (reason === 'complaint' ? complaintStrikes : 1)
  const stepMs = ladderMs[Math.min(strikes, ladderMs.length) - 1] ?? 0
  const invitationsMs = reason === 'complaint' ? complaintInvitationsMs : 0
  const next = { reason, strikes, until: nowMs + stepMs, invitationsUntil: nowMs + invitationsMs }
  return newTerms(before, next, nowMs)
}

/** The terms that an operator sets, for all mail. */
export function setTerms(known: SuppressionTerms | null, until: number, nowMs: number): SuppressionTerms {
  const before = remember(known, nowMs)
  const next = { reason: 'operator', strikes: before?.strikes ?? 0, until, invitationsUntil: until } as const
  return newTerms(before, next, nowMs)
}

const remember = (known: SuppressionTerms | null, nowMs: number): SuppressionTerms | null =>
  known !== null && nowMs < known.forgetAt ? known : null

/** Never shorter than before. The reason of terms that have ended does not stay. */
function newTerms(
  before: SuppressionTerms | null,
  next: Omit<SuppressionTerms, 'forgetAt'>,
  nowMs: number,
): SuppressionTerms {
  const until = Math.max(before?.until ?? 0, next.until)
  const invitationsUntil = Math.max(before?.invitationsUntil ?? 0, next.invitationsUntil, until)
  const isOver = before === null || before.invitationsUntil <= nowMs
  const reasons = isOver ? [next.reason] : [before.reason, next.reason]
  const reason = suppressionReasons.find((name) => reasons.includes(name)) ?? next.reason
  return {
    reason,
    strikes: next.strikes,
    until,
    invitationsUntil,
    forgetAt: Math.max(until + forgetMs, invitationsUntil),
  }
}

/**
 * When many addresses die at once, it is not the addresses: a provider or a relay says so by mistake. Then
 * strikes stop for a while: those of one app, if its own emails say so; those of all apps at one destination,
 * only if several apps see the same there, so that no app's dead addresses protect those of another.
 */
const massBounceMin = 20
const massBounceShare = 0.3
/** Strikes of one app that count for all apps: four apps reach `massBounceMin`, three do not. */
export const strikesPerAppMax = 5

/** @param counts `gone`: how many mailboxes are said not to exist; `ended`: emails delivered or failed */
export const isMassBounce = (counts: { readonly gone: number; readonly ended: number }): boolean =>
  counts.gone >= massBounceMin && counts.gone >= massBounceShare * counts.ended

/** @param capped strikes of all apps at the destination, of each app `strikesPerAppMax` at most */
export const isSeenBySeveral = (capped: number): boolean => capped >= massBounceMin

const domains = {
  gmail: ['gmail.com', 'googlemail.com'],
  outlook: ['outlook.com', 'hotmail.com', 'live.com', 'msn.com', 'hotmail.co.uk', 'hotmail.fr', 'outlook.de'],
  yahoo: ['yahoo.com', 'ymail.com', 'rocketmail.com', 'aol.com', 'yahoo.co.uk', 'yahoo.fr', 'yahoo.de'],
  icloud: ['icloud.com', 'me.com', 'mac.com'],
  gmx: ['gmx.de', 'gmx.net', 'gmx.com', 'gmx.at', 'web.de', 'mail.com'],
  proton: ['proton.me', 'protonmail.com', 'pm.me'],
  other: [],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** A large mail provider, or `other`: a list of suppressions names no domain, which may be a person's own. */
export type Destination = keyof typeof domains
export const destinations = Object.keys(domains) as Destination[]

export function classifyDestination(address: EmailAddress): Destination {
  const domain = readDomain(address).toLowerCase()
  return destinations.find((name) => domains[name].some((known) => known === domain)) ?? 'other'
}
