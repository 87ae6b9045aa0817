/**
 * One POST, from key to answer. A request is judged by the settings seen last; the store checks in the
 * same transaction that they are current, and otherwise returns the current ones to judge it again.
 * So a request costs one transaction, and a change of settings holds for the next request.
 */
import { type AppPolicy, appPolicy } from '../domain/app/app-policy.ts'
import { type KeyHash, parseAuthorization } from '../domain/app/delivery-key.ts'
import { isInNetworks } from '../domain/app/key-networks.ts'
import { idempotencyHours } from '../domain/bounds.ts'
import type { EndedEmail } from '../domain/delivery/states.ts'
import type { EmailId } from '../domain/id.ts'
import { explainLimit } from '../domain/limit.ts'
import type { Issue } from '../domain/parsed.ts'
import type { Rejection } from '../domain/request/rejection.ts'
import { noTrace, type Trace } from '../observe/tracing.ts'
import { type Caller, type EnqueueResult, type NewEmail, type Store, StoreUnavailable } from '../store/store.ts'
import type { AppPolicyCache, KeyPolicy } from './app-policy-cache.ts'
import {
  type AskedLanguage,
  type IncomingRequest,
  type JudgeContext,
  type Judgement,
  judgeRequest,
  type LinkHost,
} from './judge-request.ts'

export type AcceptDeps = {
  readonly store: Pick<Store, 'enqueue' | 'nameRecipient' | 'now'>
  readonly policies: AppPolicyCache
  readonly links: LinkHost
  /** Waits while this process delays its own mail. False if the request must be refused instead. */
  readonly waitForTurn: (key: KeyHash) => Promise<boolean> | undefined
  /** Mail was committed: wake a worker. */
  readonly onQueued: () => void
  /** A newer email superseded this one. */
  readonly onSuperseded: (email: EndedEmail) => void
  /** The accepted email is not sent. */
  readonly onSuppressed: (email: EndedEmail, accepted: NewEmail) => void
}

/** `caller` is null if the key is unknown or the store did not answer; `error` is why it did not. */
export type AcceptAnswer = { readonly caller: Caller | null } & (
  | ({ readonly emailId: EmailId; readonly isCodeIgnored: boolean } & (
      | { readonly replayed: false; readonly language: AskedLanguage | null }
      | { readonly replayed: true }
    ))
  | { readonly rejection: Rejection; readonly error?: Error }
)

/** A well-formed key, and the address of its client that the listener trusts. */
export type Presented = { readonly keyHash: KeyHash; readonly address: () => string }

/** A request is judged at most this often; more would mean that the settings change all the time. */
export const judgementsMax = 4

/** True for a key by which a request was judged, unless a later request found that it has ended. */
export function isKnownKey(policies: AppPolicyCache, authorization: string | undefined): boolean {
  const key = parseAuthorization(authorization)
  return key.kind === 'secret' && policies.get(key.hash) !== undefined
}

/** Queues the email of one request, or says why not. Rejects only for a bug. */
export async function acceptEmail(
  deps: AcceptDeps,
  request: IncomingRequest,
  trace: Trace = noTrace,
): Promise<AcceptAnswer> {
  const key = parseAuthorization(request.authorization)
  if (key.kind !== 'secret') {
    return { caller: null, rejection: { code: 'invalid_key', message: keyMessages[key.kind] } }
  }
  const caller = { keyHash: key.hash, address: request.address }
  const answer = await acceptJudged(deps, caller, (context) => judgeRequest(request, context), trace)
  if (!('error' in answer)) return answer
  const advice = request.idempotencyKey === undefined ? adviceWithoutKey : adviceWithKey
  return { ...answer, rejection: { ...answer.rejection, advice } }
}

const adviceWithKey = 'Send the same Idempotency-Key again, so that it is not sent twice.'
const adviceWithoutKey = 'Without an Idempotency-Key, another request may send it twice: give each email one.'

/**
 * Queues an email for a well-formed key, or says why not. Rejects only for a bug.
 * @param judge is called again when the settings of the app have changed meanwhile
 */
export async function acceptJudged(
  deps: AcceptDeps,
  { keyHash, address }: Presented,
  judge: (context: JudgeContext) => Judgement,
  trace: Trace = noTrace,
): Promise<AcceptAnswer> {
  try {
    for (let judgements = 0; judgements < judgementsMax; judgements++) {
      const known = deps.policies.get(keyHash)
      const context = { links: deps.links, nowMs: deps.store.now(), traceparent: trace.traceparent }
      const judgement =
        known === undefined
          ? null
          : trace.run('judge', () => judgeFrom(address, known, (policy) => judge({ ...context, policy })))
      // Invalid requests skip backpressure: they are refused without queueing mail.
      const isValid = judgement !== null && 'admit' in judgement.judged.verdict
      if (isValid && (await deps.waitForTurn(keyHash)) === false) return overloadedAnswer
      const asked = { keyHash, judged: judgement?.judged ?? null }
      const result = await trace.wait('enqueue', () => deps.store.enqueue(asked))
      // A key that has ended is forgotten: its requests are refused without being judged, and are no longer
      // traced.
      if (result.kind === 'invalid_key') deps.policies.delete(keyHash)
      if (result.kind !== 'judge_again') return withRecipient(deps, answerTo(deps, result, judgement), judgement)
      deps.policies.set(keyHash, { policy: appPolicy(result.app), networks: result.networks })
    }
    return unavailable(new Error('the settings of the app changed several times while a request was judged'))
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return unavailable(error)
  }
}

/** Judges a request, unless its key may not be used from the address of its client. */
function judgeFrom(
  address: () => string,
  { networks, policy }: KeyPolicy,
  judge: (policy: AppPolicy) => Judgement,
): Judgement {
  if (networks === null) return judge(policy)
  const from = address()
  return isInNetworks(from, networks) ? judge(policy) : refuseAddress(from, policy)
}

/** Without its idempotency key: an email that it has queued before is not for this address to know of. */
const refuseAddress = (address: string, { version }: AppPolicy): Judgement => ({
  judged: { version, verdict: { refuse: 'address_not_allowed' }, idempotency: null },
  rejection: {
    code: 'address_not_allowed',
    message: `This delivery key may not be used from ${address}. An operator of the app can change its networks.`,
    address,
  },
  to: null,
  language: null,
  isCodeIgnored: false,
})

/** A refusal that names its app also names its recipient, so that operators find it by the address. */
function withRecipient({ store }: AcceptDeps, answer: AcceptAnswer, judgement: Judgement | null): AcceptAnswer {
  const to = judgement?.to ?? null
  if (!('rejection' in answer) || answer.caller === null || to === null) return answer
  return { ...answer, rejection: { ...answer.rejection, recipient: store.nameRecipient(to) } }
}

const unavailable = (error: Error): AcceptAnswer => ({
  caller: null,
  rejection: { code: 'queue_unavailable' },
  error,
})

const overloadedAnswer: AcceptAnswer = {
  caller: null,
  rejection: {
    code: 'queue_unavailable',
    message: 'This server is behind with its mail; the email was not queued. Try again.',
  },
}

const keyMessages = {
  missing: 'No delivery key: send the header "Authorization: Bearer pst_…".',
  mistyped: 'The delivery key is mistyped or cut short: copy it whole, pst_ and 49 characters.',
  other: 'This is a management token: send it to the management API. Emails need a delivery key (pst_…).',
}

const idempotencyKeyReused: Issue = {
  field: 'Idempotency-Key',
  code: 'idempotency_key_reused',
  message: `This Idempotency-Key was used with another body in the last ${idempotencyHours} hours; use a new one for a new email.`,
}

function answerTo(
  deps: AcceptDeps,
  result: Exclude<EnqueueResult, { kind: 'judge_again' }>,
  judgement: Judgement | null,
): AcceptAnswer {
  const { rejection = null, language = null, isCodeIgnored = false } = judgement ?? {}
  if (result.kind === 'invalid_key') return { caller: null, rejection: { code: 'invalid_key' } }
  const { appId, keyId } = result
  const caller = { appId, keyId }
  switch (result.kind) {
    case 'queued':
      deps.onQueued()
      for (const emailId of result.superseded)
        deps.onSuperseded({ emailId, appId, state: 'cancelled', reason: 'superseded' })
      return { caller, emailId: result.emailId, isCodeIgnored, replayed: false, language }
    case 'suppressed': {
      const verdict = judgement?.judged.verdict
      if (verdict === undefined || !('admit' in verdict)) throw new Error('the store suppressed a refused request')
      const ended = { emailId: result.emailId, appId, state: 'suppressed', reason: null } as const
      deps.onSuppressed(ended, verdict.admit)
      return { caller, emailId: result.emailId, isCodeIgnored, replayed: false, language }
    }
    case 'replayed':
      return { caller, emailId: result.emailId, isCodeIgnored, replayed: true }
    case 'idempotency_key_reused': {
      const issues = [idempotencyKeyReused, ...(rejection?.issues ?? [])]
      return { caller, rejection: { code: 'invalid_body', issues } }
    }
    case 'refused':
      if (rejection === null) throw new Error('the store refused a request that was not refused')
      return { caller, rejection }
    default:
      return { caller, rejection: toRejection(result) }
  }
}

type NoRoom = Extract<EnqueueResult, { readonly limit: unknown } | { readonly kind: 'queue_full' }>

/** The refusal of an email that the store has no room for now. */
export function toRejection(result: NoRoom): Rejection {
  if (result.kind === 'queue_full') return { code: result.kind }
  const { kind: code, limit } = result
  return { code, limit, message: explainLimit(code, limit) }
}
