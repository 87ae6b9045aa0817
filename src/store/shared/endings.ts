/** From the outcome of an attempt to what becomes of the email's row: the same in both engines. */
import type { AttemptRecord, DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import type { EndReason, FinalState } from '../../domain/delivery/states.ts'

/**
 * `final`: the email ends in this state. Otherwise it waits `waitMs`. `givenBack`: the attempt does not
 * count, and without a wait the email is `queued` again; in every other case it is `deferred`. Mail with a
 * `missingKey` is queued by a worker that has the key, and not by time.
 */
export type Ending =
  | { readonly final: FinalState; readonly reason: EndReason | null }
  | {
      readonly final: null
      readonly waitMs: number
      readonly givenBack: boolean
      readonly missingKey: string | null
    }

export function toEnding(outcome: DeliveryOutcome): Ending {
  switch (outcome.kind) {
    case 'delivered':
    case 'expired':
      return { final: outcome.kind, reason: null }
    case 'failed':
    case 'cancelled':
      return { final: outcome.kind, reason: outcome.reason }
    case 'simulated':
      return { final: outcome.state, reason: outcome.reason }
    case 'deferred':
      return { final: null, waitMs: Math.ceil(outcome.waitMs), givenBack: false, missingKey: null }
    case 'unattempted': {
      const { missingKey = null, waitMs } = outcome
      return { final: null, waitMs: Math.ceil(waitMs), givenBack: true, missingKey }
    }
    default:
      return outcome satisfies never
  }
}

/** Text that JSON can hold in both engines: without NUL and without halves of surrogate pairs. */
const storable = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** The line of an outcome in the email's record, without its time; null for an outcome that leaves none. */
export function attemptRecord(outcome: DeliveryOutcome): Omit<AttemptRecord, 'at'> | null {
  if (outcome.kind === 'expired' || outcome.kind === 'cancelled') return null
  const { kind, relay, reply } = outcome
  const said = kind === 'simulated' ? outcome.state : kind
  if (said === 'suppressed') return null
  return {
    outcome: said,
    ...(relay === null ? {} : { relay }),
    reply: { ...reply, text: storable(reply.text) },
    ...(kind === 'deferred' && outcome.ambiguous ? { ambiguous: true } : {}),
  }
}
