/** One event of a mail service, in the words of all of them. */
import type { FailureCause } from '../domain/delivery/failure-cause.ts'
import type { ReportKind } from '../domain/delivery/report.ts'
import { toText } from '../services/json-fields.ts'

/** The meaning of a type of event. */
export type EventMeaning = {
  readonly kind: ReportKind
  /** Whether the service calls a bounce permanent; otherwise the reply decides. */
  readonly permanent?: boolean
  /** The cause of a bounce, where the service knows more than the reply says. */
  readonly correct?: (judged: FailureCause) => FailureCause
}

/** The rest of an event, as the service wrote it: nothing has been checked. */
type EventDetails = {
  readonly recipient: unknown
  /** The reply of a mail server, or words of the service. */
  readonly text?: unknown
  /** An enhanced status code (RFC 3463). */
  readonly status?: unknown
}

export type ServiceEvent = EventMeaning & EventDetails

export const bounced = (permanent?: boolean, correct?: (judged: FailureCause) => FailureCause): EventMeaning => ({
  kind: 'bounced',
  ...(permanent !== undefined && { permanent }),
  ...(correct !== undefined && { correct }),
})

/** By the type of an event, as the service writes it. */
export type Meanings = Readonly<Record<string, EventMeaning | ReportKind>>

/** The event, or null if its type says nothing about a delivery. */
export function describeEvent(meanings: Meanings, type: unknown, details: EventDetails): ServiceEvent | null {
  const name = toText(type)
  const meaning = Object.hasOwn(meanings, name) ? meanings[name] : undefined
  if (meaning === undefined) return null
  return { ...(typeof meaning === 'string' ? { kind: meaning } : meaning), ...details }
}

/** For a bounce whose reply says nothing. */
export const unlessKnown =
  (cause: FailureCause) =>
  (judged: FailureCause): FailureCause =>
    judged === 'unknown' ? cause : judged

/** For mail that was blocked: a server may say so with the code of a missing mailbox. */
export const blocked = (judged: FailureCause): FailureCause =>
  judged === 'unknown' || judged === 'no_mailbox' ? 'policy' : judged

/** The service did not try. */
export const suppressed = (): FailureCause => 'relay_suppressed'
