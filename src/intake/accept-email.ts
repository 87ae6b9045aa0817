/**
 * One POST, from key to answer. The settings known here are never authoritative: a request is
 * judged by the ones last seen, the store says where they are stale, and it is judged again. So a
 * request costs one transaction, and a change holds for the very next one.
 */
import { hash } from 'node:crypto'
import { type KeyHash, parseAuthorization } from '../domain/app/delivery-key.ts'
import type { EmailId } from '../domain/id.ts'
import type { Issue, Rejection } from '../domain/request/rejection.ts'
import { type EnqueueRequest, type EnqueueResult, type Store, StoreUnavailable } from '../store/store.ts'
import {
  checkIdempotencyKey,
  type IncomingRequest,
  type Judgement,
  judgeRequest,
  type LinkHost,
  type Sender,
  toSender,
} from './judge-request.ts'

export type AcceptDeps = {
  readonly store: Pick<Store, 'enqueue' | 'now'>
  readonly senders: AppPolicyCache
  readonly links: LinkHost
  /** A committed email is waiting: wake a worker. */
  readonly onQueued: () => void
  /** The diagnosis behind a 503, for the log. */
  readonly onUnavailable: (error: Error) => void
}

export type AcceptAnswer =
  | { readonly emailId: EmailId; readonly replayed: boolean }
  | { readonly rejection: Rejection }

const judgementsMax = 4

/** Queues the email of one request, or says why not. Never rejects for an expected reason. */
export async function acceptEmail(deps: AcceptDeps, request: IncomingRequest): Promise<AcceptAnswer> {
  const key = parseAuthorization(request.authorization)
  if (key.kind !== 'key') return { rejection: { code: 'invalid_key', message: keyMessages[key.kind] } }
  try {
    for (let turn = 0; turn < judgementsMax; turn++) {
      const sender = deps.senders.find(key.hash)
      const judgement =
        sender === undefined
          ? null
          : judgeRequest(request, { sender, links: deps.links, nowMs: deps.store.now() })
      const result = await deps.store.enqueue(toEnqueue(key.hash, { request, sender, judgement }))
      if (result.kind !== 'judge_again') return answerTo(deps, result, judgement)
      deps.senders.keep(key.hash, toSender(result.app))
    }
    deps.onUnavailable(
      new Error('the settings of the app changed again and again while a request was judged'),
    )
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    deps.onUnavailable(error)
  }
  return { rejection: { code: 'queue_unavailable' } }
}

const keyMessages = {
  missing: 'No delivery key: send the header "Authorization: Bearer pst_…".',
  mistyped: 'The delivery key is mistyped or cut short: copy it whole, pst_ and 49 characters.',
}

type Judged = { request: IncomingRequest; sender: Sender | undefined; judgement: Judgement | null }

function toEnqueue(keyHash: KeyHash, { request, sender, judgement }: Judged): EnqueueRequest {
  const { idempotencyKey, body } = request
  const usable = idempotencyKey !== undefined && checkIdempotencyKey(idempotencyKey).length === 0
  const idempotency = usable
    ? { key: idempotencyKey, bodyDigest: hash('sha256', body.bytes ?? 'too large', 'base64url') }
    : null
  if (sender === undefined || judgement === null) {
    return { keyHash, appVersion: null, verdict: { refuse: 'invalid_body' }, idempotency: null }
  }
  const verdict = 'admit' in judgement ? judgement : { refuse: judgement.reject.code }
  return { keyHash, appVersion: sender.version, verdict, idempotency }
}

const idempotencyKeyReused: Issue = {
  field: 'Idempotency-Key',
  code: 'idempotency_key_reused',
  message: 'This Idempotency-Key was used with another body within 24 hours; use a new one for a new email.',
}

function answerTo(
  deps: AcceptDeps,
  result: Exclude<EnqueueResult, { kind: 'judge_again' }>,
  judgement: Judgement | null,
): AcceptAnswer {
  const rejection = judgement !== null && 'reject' in judgement ? judgement.reject : null
  switch (result.kind) {
    case 'queued':
      deps.onQueued()
      return { emailId: result.emailId, replayed: false }
    case 'replayed':
      return { emailId: result.emailId, replayed: true }
    case 'idempotency_key_reused':
      return {
        rejection: { code: 'invalid_body', issues: [idempotencyKeyReused, ...(rejection?.issues ?? [])] },
      }
    case 'refused':
      return { rejection: rejection ?? { code: 'invalid_body' } }
    case 'invalid_key':
    case 'queue_full':
      return { rejection: { code: result.kind } }
    case 'key_rate_limited':
    case 'recipient_rate_limited':
    case 'daily_limit_reached':
      return { rejection: { code: result.kind, limit: result.limit } }
    default:
      return result satisfies never
  }
}

/** The senders seen last, by key; bounded, and only ever filled by the store's own answers. */
export class AppPolicyCache {
  readonly #senders = new Map<KeyHash, Sender>()
  readonly #max: number

  constructor(max = 10_000) {
    this.#max = max
  }

  find(key: KeyHash): Sender | undefined {
    return this.#senders.get(key)
  }

  keep(key: KeyHash, sender: Sender): void {
    const oldest = this.#senders.keys().next().value
    if (this.#senders.size >= this.#max && oldest !== undefined) this.#senders.delete(oldest)
    this.#senders.set(key, sender)
  }
}
