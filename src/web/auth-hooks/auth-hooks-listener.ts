/**
 * The auth hooks listener: auth servers post their mail to `/{system}/{slug}`. Every call proves itself by a
 * secret of this app and system; a wrong secret, another app's and an app that does not exist get one
 * answer.
 */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseSlug } from '../../domain/app/app.ts'
import { type KeyHash, parseAuthHookAuthorization } from '../../domain/app/delivery-key.ts'
import type { AuthHookResult, PostingHook } from '../../domain/auth-hooks/auth-hook.ts'
import { findPostingSystem, postingSystems } from '../../domain/auth-hooks/auth-hooks.ts'
import { parseJson } from '../../domain/request/email-request.ts'
import { refusals } from '../../domain/request/rejection.ts'
import type { CallHeaders } from '../../domain/signatures.ts'
import { Turns } from '../../domain/turns.ts'
import { type AuthHookOutcome, acceptAuthHook } from '../../intake/accept-auth-hook.ts'
import type { AcceptAnswer, AcceptDeps } from '../../intake/accept-email.ts'
import { toRequestEvent } from '../../intake/request-event.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { clientAddress } from '../http/client-address.ts'
import { type ListenerDeps, newListener, sendError, sendJson } from '../http/listener.ts'
import { AuthHookSecrets } from './auth-hook-secrets.ts'

export type AuthHooksDeps = Omit<AcceptDeps, 'store'> &
  ListenerDeps & {
    readonly store: AcceptDeps['store'] & Pick<Store, 'findAppBySlug' | 'listAuthHookSecrets'>
    readonly ring: KeyRing
    /** The path of the public address, below which a proxy may pass calls on. */
    readonly basePath: string
    readonly isStopping: () => boolean
    readonly random: () => number
  }

type Params = { readonly system: string; readonly slug: string }
type AuthHookRequest = FastifyRequest<{ Params: Params }>

/** Bodies of auth servers have some 3 KB. Larger ones take turns: their signatures cost more. */
const smallBytes = 16 * 1024
const bodyBytesMax = Math.max(...postingSystems.map((system) => system.bodyBytesMax))

export function newAuthHooksListener(deps: AuthHooksDeps): FastifyInstance {
  const parts = { deps, secrets: new AuthHookSecrets(deps.store, deps.ring), turns: new Turns() }
  const listener = newListener({
    emit: deps.emit,
    isProxy: deps.isProxy,
    bodyBytesMax,
    notFound: refuseOtherRoutes,
    onError: (error, request, reply) => {
      if (!(error instanceof StoreUnavailable)) return null
      deps.emit({ kind: 'store_unavailable', requestId: request.id, error, work: 'request' })
      return sendError(reply.header('retry-after', '5'), 503, unavailable)
    },
  })
  for (const prefix of new Set([deps.basePath, '']))
    listener.post<{ Params: Params }>(`${prefix}/:system/:slug`, (request, reply) => answerCall(parts, request, reply))
  return listener
}

const unavailable = { code: 'queue_unavailable', message: refusals.queue_unavailable.message }

function refuseOtherRoutes(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ''] = request.url.split('?', 1)
  const system = path.split('/').at(-2) ?? ''
  if (request.method === 'POST' || findPostingSystem(system) === null)
    return sendError(reply, 404, { code: 'not_found', message: 'There is nothing at this address.' })
  reply.header('allow', 'POST')
  return sendError(reply, 405, { code: 'method_not_allowed', message: 'Auth servers send POST.' })
}

type Parts = { readonly deps: AuthHooksDeps; readonly secrets: AuthHookSecrets; readonly turns: Turns }

async function answerCall(
  { deps, secrets, turns }: Parts,
  request: AuthHookRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const system = findPostingSystem(request.params.system)
  const { slug } = request.params
  if (system === null || !parseSlug(slug).ok) return refuseOtherRoutes(request, reply)
  if (deps.isStopping()) return sendError(reply.header('retry-after', '5'), 503, unavailable)
  const begunAtMs = performance.now()
  const report = ({ answer, message }: AuthHookOutcome) => {
    const facts = { requestId: request.id, traceId: null, tookMs: performance.now() - begunAtMs }
    if ('error' in answer)
      deps.emit({ kind: 'store_unavailable', requestId: request.id, error: answer.error, work: 'request' })
    deps.emit(toRequestEvent({ ...facts, source: system.name, message }, answer))
  }
  const bytes = readBytes(request.body, system)
  if (bytes === null) {
    report({ answer: tooLarge, message: null })
    return answer(deps, { system, outcomes: [{ answer: tooLarge, message: null }], reply })
  }
  if (bytes.length > smallBytes) await turns.next(bytes.length)
  const call = { system, slug, bytes, headers: request.headers as CallHeaders }
  // A secret that was revoked since it was read is forgotten; there may be another one.
  for (let rounds = 0; rounds < 2; rounds++) {
    const keyHash = await authenticate(call, secrets, deps)
    if (keyHash === null) break
    const body = isUtf8(bytes) ? parseJson(bytes) : undefined
    const outcomes = await acceptAuthHook(deps, {
      system,
      keyHash,
      body,
      address: () => clientAddress(request, deps.isProxy),
    })
    for (const outcome of outcomes.filter((each) => !isRevoked(each))) report(outcome)
    if (!outcomes.some(isRevoked)) return answer(deps, { system, outcomes, reply })
    secrets.forget(slug, system.name)
  }
  report({ answer: stranger, message: null })
  return refuseStranger(reply)
}

/** Null if there are more than the system sends. */
function readBytes(body: unknown, { bodyBytesMax: max }: PostingHook): Uint8Array | null {
  if (body === undefined) return new Uint8Array()
  return body instanceof Uint8Array && body.length <= max ? body : null
}

const stranger: AcceptAnswer = { caller: null, rejection: { code: 'invalid_key' } }

/** Its size is no secret, so it is said before anybody proves anything. */
const tooLarge: AcceptAnswer = {
  caller: null,
  rejection: {
    code: 'invalid_body',
    issues: [{ field: 'body', code: 'body_too_large', message: 'The body is larger than any of this system.' }],
  },
}

const isRevoked = ({ answer }: AuthHookOutcome): boolean =>
  'rejection' in answer && answer.rejection.code === 'invalid_key'

type Call = {
  readonly system: PostingHook
  readonly slug: string
  readonly bytes: Uint8Array
  readonly headers: CallHeaders
}

/** The hash of the key whose secret the call proves; null if it proves none. */
async function authenticate(
  { system, slug, bytes, headers }: Call,
  secrets: AuthHookSecrets,
  { store }: AuthHooksDeps,
): Promise<KeyHash | null> {
  const { auth, name } = system
  if (auth.kind === 'bearer') {
    const presented = parseAuthHookAuthorization(headers.authorization)
    if (presented.kind !== 'secret') return null
    return (await secrets.find(slug, name, ({ hash }) => hash === presented.hash))?.hash ?? null
  }
  const nowMs = store.now()
  const fits = (secret: string) => auth.verify({ headers, body: bytes, secret, nowMs })
  return (await secrets.find(slug, name, ({ secret }) => secret !== null && fits(secret)))?.hash ?? null
}

function refuseStranger(reply: FastifyReply): FastifyReply {
  const message = 'The secret is unknown here, has ended, or belongs to another app or system.'
  return sendError(reply, 401, { code: 'invalid_key', message })
}

type Answering = {
  readonly system: PostingHook
  readonly outcomes: readonly AuthHookOutcome[]
  readonly reply: FastifyReply
}

/** As the system reads it. A notice was taken, though nothing is sent. */
function answer({ random }: AuthHooksDeps, { system, outcomes, reply }: Answering): FastifyReply {
  const rejection = outcomes
    .map(({ answer }) => ('rejection' in answer ? answer.rejection : null))
    .find((each) => each !== null && each.code !== 'notice_not_sent')
  const code = rejection?.code
  const result: AuthHookResult =
    code === undefined
      ? { kind: 'queued' }
      : { kind: 'refused', code, status: refusals[code].status, requestId: reply.request.id }
  const { status, body } = system.answer(result)
  if (code !== undefined && refusals[code].status === 503)
    reply.header('retry-after', String(1 + Math.floor(random() * 5)))
  else if (rejection?.limit !== undefined)
    reply.header('retry-after', String(Math.ceil(rejection.limit.retryAfterMs / 1000)))
  return sendJson(reply, status, JSON.stringify(body))
}
