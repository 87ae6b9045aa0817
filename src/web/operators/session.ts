/**
 * The session of a request: the person who is signed in, and what that person may do. It is looked up for
 * each request.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SessionId } from '../../domain/id.ts'
import { isSessionAlive, parseSessionSecret, sessionMaxMs } from '../../domain/operator/sign-in.ts'
import type { Access } from '../../management/operation/access.ts'
import type { SessionRecord } from '../../store/people-store.ts'
import type { Store } from '../../store/store.ts'
import { type ConsoleAddress, findOrigin } from './guard.ts'
import { LastUses } from './last-uses.ts'

/** `session` is null in dev mode, where everybody who reaches the console may do everything. */
export type SignedIn = { readonly access: Access; readonly session: SessionRecord | null }

/** Reads the session of a request; null if nobody is signed in. */
export type ReadSession = (
  request: FastifyRequest,
  /** Pass `notes: false` for checks that the server makes itself; they do not extend the session. */
  options?: { readonly notes: boolean },
) => Promise<SignedIn | null>

/** Over https the name keeps other hosts of the domain from setting the cookie. */
const cookieName = (origin: string): string => (origin.startsWith('https:') ? '__Host-postern' : 'postern')

/**
 * SameSite is Lax, so that a link to a page of the console finds its session; `guard.ts` protects changes.
 */
export function setSessionCookie(reply: FastifyReply, origin: string, secret: string): void {
  setCookie(reply, origin, { name: cookieName(origin), value: secret, maxAgeS: sessionMaxMs / 1000 })
}

export const clearSessionCookie = (reply: FastifyReply, origin: string): void =>
  setCookie(reply, origin, { name: cookieName(origin), value: '', maxAgeS: 0 })

export function setCookie(
  reply: FastifyReply,
  origin: string,
  { name, value, maxAgeS }: { readonly name: string; readonly value: string; readonly maxAgeS: number },
): void {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  reply.header('set-cookie', `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}${secure}`)
}

export function readCookie(request: FastifyRequest, name: string): string | null {
  const cookies = (request.headers.cookie ?? '').split(/; */)
  const found = cookies.find((cookie) => cookie.startsWith(`${name}=`))
  return found === undefined ? null : found.slice(name.length + 1)
}

const devAccess = (requestId: string): Access => ({
  actor: { kind: 'service', id: null, name: 'dev', via: 'console', requestId, ofService: true },
  role: 'admin',
  apps: null,
  expiresAt: null,
  signedInAt: null,
})

/** In dev mode nobody signs in. It listens on loopback, unless `POSTERN_CONSOLE_PUBLIC` is `yes`. */
export const devSession: ReadSession = async ({ id }) => ({ access: devAccess(id), session: null })

export function newSessionReader(store: Store, address: ConsoleAddress): ReadSession {
  const uses = new LastUses<SessionId>({ note: (id) => store.noteSessionUse(id), now: () => store.now() })
  return async (request, { notes } = { notes: true }) => {
    const origin = findOrigin(address, request.headers.host)
    const secret = origin === null ? null : readCookie(request, cookieName(origin))
    const hash = secret === null ? null : parseSessionSecret(secret)
    const session = hash === null ? null : await store.findSession(hash)
    if (session === null || session.person.disabledAt !== null || !isSessionAlive(session, store.now())) return null
    // The refreshes of a page that is left open extend no session either.
    const isRefresh = request.method === 'GET' && request.headers['postern-refresh'] !== undefined
    if (notes && !isRefresh) uses.note(session.id, session.seenAt)
    return { access: toAccess(session, request.id), session }
  }
}

function toAccess({ person, createdAt, expiresAt }: SessionRecord, requestId: string): Access {
  const { id, name, role, apps } = person
  const actor = { kind: 'person', id, name, via: 'console', requestId, ofService: apps === null } as const
  return { actor, role, apps: apps && new Set(apps), expiresAt, signedInAt: createdAt }
}
