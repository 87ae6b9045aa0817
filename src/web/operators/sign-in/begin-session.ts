/** The steps that all ways of signing in share: the origin, the new session and its cookie. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { hashSessionSecret, newSessionSecret, type SignInMethod } from '../../../domain/operator/sign-in.ts'
import { redact } from '../../../domain/redaction/redact.ts'
import type { Emit } from '../../../observe/events.ts'
import type { NewSession } from '../../../store/people-store.ts'
import type { Store } from '../../../store/store.ts'
import { type ConsoleAddress, findOrigin } from '../guard.ts'
import type { OperatorRates } from '../rates.ts'
import { type ReadSession, setSessionCookie } from '../session.ts'

export type SessionDeps = {
  readonly store: Store
  readonly address: ConsoleAddress
  readonly readSession: ReadSession
  readonly emit: Emit
  readonly rates: OperatorRates
}

export type OnRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>

/** The origin of a request that `guardPages` has let pass. */
export const ownOrigin = ({ address }: Pick<SessionDeps, 'address'>, request: FastifyRequest): string =>
  findOrigin(address, request.headers.host) ?? address.url

/** A path of this console to go on to; anything else leads to the overview. */
export const safePath = (path: string | null | undefined): string =>
  path && /^\/[\x21-\x7e]*$/.test(path) && !/^\/[/\\]|\\|^\/(sign-in|live|assets)/.test(path) ? path : '/'

const agentMax = 200

export const newSessionFor = (request: FastifyRequest): NewSession & { readonly secret: string } => {
  const secret = newSessionSecret()
  const agent = redact((request.headers['user-agent'] ?? 'unknown').slice(0, agentMax), { kind: 'other' })
  return { secret, hash: hashSessionSecret(secret), agent, requestId: request.id }
}

/** Gives the browser its session. The old one of this browser, if any, goes on until it ends. */
export function beginSession(
  deps: SessionDeps,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  { secret, method }: { readonly secret: string; readonly method: SignInMethod },
): void {
  setSessionCookie(reply, ownOrigin(deps, request), secret)
  deps.emit({ kind: 'console_sign_in', method, result: 'signed_in', requestId: request.id })
}
