/**
 * The failure policy of mail APIs. The status decides, unless a provider's code says more. Where the two
 * readings cost differently, the relay is blamed: that costs time, and blaming the email loses it.
 */

import { redact, type Source } from '../redaction/redact.ts'
import { describeClockDifference } from './clock-difference.ts'
import type { FailureClass, Reply } from './reply.ts'
import { readRetryAfter } from './retry-after.ts'

/** The answer of a mail API, bounded. */
export type HttpAnswer = {
  readonly status: number
  /** By name, in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Null if the body is not JSON, or too long. */
  readonly json: unknown
}

/** The error that a provider describes in an answer. */
export type ApiError = { readonly code: string; readonly text: string }

/**
 * `account`: credentials, permissions or a quota; nothing is sent until an operator acts. `wait`: the relay
 * asks for time. `refused`: this email, for good. `doubted`: likewise, but the answer does not blame its
 * recipient. `deferred`: this email, for now, and no other relay may take it. `trouble`: the relay failed,
 * and another may take the email. `ambiguous`: the relay may have taken the email.
 */
export type FailureKind = 'account' | 'wait' | 'refused' | 'doubted' | 'deferred' | 'trouble' | 'ambiguous'

/** Any request would be refused like this: credentials, payment, method, proxies, protocol. */
const accountStatuses: readonly number[] = [401, 402, 403, 404, 405, 407, 426]
/** A server that waited in vain, or that was not the one for the request. */
const againStatuses: readonly number[] = [408, 421, 425]

/** @param isDescribed whether the error is the provider's own, and not one of a server on the way */
export function judgeStatus(status: number, isDescribed: boolean): FailureKind {
  if (status < 300 || status === 502 || status === 504) return 'ambiguous'
  if (status < 400 || accountStatuses.includes(status)) return 'account'
  if (status === 429 || status === 503) return 'wait'
  if (status >= 500 || againStatuses.includes(status)) return 'trouble'
  return isDescribed ? 'refused' : 'account'
}

const ofEmail = {
  permanent: false,
  scope: 'message',
  lasting: false,
  slowDown: null,
  retryAfterMs: null,
  ambiguous: false,
} as const

const classes: Readonly<Record<FailureKind, FailureClass>> = {
  account: { ...ofEmail, scope: 'relay', lasting: true },
  wait: { ...ofEmail, scope: 'relay', slowDown: 'connections' },
  refused: { ...ofEmail, permanent: true },
  doubted: { ...ofEmail, permanent: true, scope: 'unclear' },
  deferred: ofEmail,
  trouble: { ...ofEmail, scope: 'unclear' },
  ambiguous: { ...ofEmail, ambiguous: true },
}

/** For a relay that asks for time without saying how much. */
const usualWaitMs = 1000

export function classifyAnswer(kind: FailureKind, { headers }: HttpAnswer, nowMs: number): FailureClass {
  const retryAfterMs = kind === 'wait' ? (readRetryAfter(headers['retry-after'], nowMs) ?? usualWaitMs) : null
  return { ...classes[kind], retryAfterMs }
}

/** For a message that was handed over and got no answer. */
export const unanswered: FailureClass = classes.ambiguous

type Replying = {
  readonly error: ApiError
  readonly source: Source
  readonly nowMs: number
}

/** The record of a refusal: `422 validation_error: …`. */
export function toReply({ status, headers }: HttpAnswer, { error, source, nowMs }: Replying): Reply {
  const { code, text } = error
  const clock = status === 401 || status === 403 ? describeClockDifference(headers.date ?? null, nowMs) : ''
  const said = [code, text].filter((part) => part !== '').join(': ')
  return { code: status, enhanced: null, text: redact(`${status} ${said}${clock}`.trim(), source) }
}

const idMax = 100

/** The record of an accepted email; `id` is the provider's, empty if it gave none. */
export function toAcceptance({ status }: HttpAnswer, id: string, source: Source): Reply {
  // Cut last: half of a secret is none that could be found.
  const named = id === '' ? '' : `, id ${redact(id, source).slice(0, idMax)}`
  return { code: status, enhanced: null, text: `${status} accepted${named}` }
}
