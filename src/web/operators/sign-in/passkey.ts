/**
 * Passkeys (WebAuthn): a person adds one to the account, and signs in with it. The library that checks them
 * is loaded with the first use. Challenges are kept in the store and taken once, so any process can check the
 * answer to another's challenge.
 */

import { hash } from 'node:crypto'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { passkeysMax } from '../../../domain/bounds.ts'
import { hasControls } from '../../../domain/controls.ts'
import { isFreshSignIn } from '../../../domain/operator/sign-in.ts'
import type { Access } from '../../../management/operation/access.ts'
import type { PasskeyRecord, SessionRecord } from '../../../store/people-store.ts'
import { sendError, sendJson } from '../../http/listener.ts'
import { beginSession, newSessionFor, type OnRequest, ownOrigin, type SessionDeps, safePath } from './begin-session.ts'

const load = () => import('@simplewebauthn/server')

/** EdDSA, ES256 and RS256: what authenticators have, without those for which Node prints a warning. */
const algorithms = [-8, -7, -257]
const challengeMs = 300_000
const nameMax = 60

/** A challenge of one ceremony answers no other; that of a new passkey belongs to the session that asked. */
const digest = (ceremony: string, challenge: string): string => hash('sha256', `${ceremony} ${challenge}`, 'base64url')

const signingIn = 'sign-in'

const keep = ({ store }: SessionDeps, ceremony: string, challenge: string): Promise<boolean> =>
  store.keepNonce(digest(ceremony, challenge), store.now() + challengeMs)

const sendDocument = (reply: FastifyReply, document: unknown): FastifyReply =>
  sendJson(reply.header('cache-control', 'no-store'), 200, JSON.stringify(document))

const refused = (reply: FastifyReply, message: string): FastifyReply =>
  sendError(reply, 403, { code: 'passkey_refused', message })

/** The id of a credential, as WebAuthn bounds it. */
const isPasskeyId = (id: unknown): id is string => typeof id === 'string' && /^[\w-]{1,1400}$/.test(id)

/** The JSON of a request; null if it is none. Its parts are checked by the library. */
function readDocument<T>({ body }: FastifyRequest): T | null {
  try {
    return JSON.parse(Buffer.from((body ?? '') as Uint8Array).toString('utf8')) as T
  } catch {
    return null
  }
}

export function addPasskeySignIn(pages: FastifyInstance, deps: SessionDeps, limited: OnRequest): void {
  pages.post('/sign-in/passkey/options', { onRequest: limited }, async (request, reply) => {
    const { generateAuthenticationOptions } = await load()
    const rpID = new URL(ownOrigin(deps, request)).hostname
    const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' })
    await keep(deps, signingIn, options.challenge)
    return sendDocument(reply, options)
  })
  pages.post('/sign-in/passkey', { onRequest: limited }, async (request, reply) => {
    const response = readDocument<AuthenticationResponseJSON>(request)
    const session = response === null ? null : await signInByPasskey(deps, request, response)
    if (session === null || session === 'too_often') {
      deps.emit({ kind: 'console_sign_in', method: 'passkey', result: 'refused', requestId: request.id })
      return refused(
        reply,
        session === null
          ? 'This passkey is unknown here, or its answer came too late. Try again.'
          : 'You have signed in too often within the hour. Try again later.',
      )
    }
    beginSession(deps, { request, reply }, { secret: session.secret, method: 'passkey' })
    const { to } = request.query as { to?: string }
    return sendDocument(reply, { to: safePath(to) })
  })
  addRegistration(pages, deps)
}

async function signInByPasskey(
  deps: SessionDeps,
  request: FastifyRequest,
  response: AuthenticationResponseJSON,
): Promise<{ readonly secret: string } | 'too_often' | null> {
  const { store } = deps
  const passkey = isPasskeyId(response.id) ? await store.findPasskey(response.id) : null
  if (passkey === null || !isOwner(passkey, response)) return null
  const counter = await verifySignature(deps, request, { response, passkey })
  if (counter === null) return null
  if (!deps.rates.chargeSignIn(passkey.person)) return 'too_often'
  const { secret, ...wanted } = newSessionFor(request)
  const session = await store.signInByPasskey(passkey.id, counter, wanted)
  return session && { secret }
}

/** An authenticator may name the person whose passkey it is (WebAuthn section 7.2 step 6). */
const isOwner = ({ person }: PasskeyRecord, { response }: AuthenticationResponseJSON): boolean =>
  response?.userHandle == null || response.userHandle === Buffer.from(person).toString('base64url')

/** The new counter of the passkey; null if its answer does not hold. */
async function verifySignature(
  deps: SessionDeps,
  request: FastifyRequest,
  { response, passkey }: { readonly response: AuthenticationResponseJSON; readonly passkey: PasskeyRecord },
): Promise<number | null> {
  const { verifyAuthenticationResponse } = await load()
  const origin = ownOrigin(deps, request)
  const { id, counter } = passkey
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: (challenge) => deps.store.takeNonce(digest(signingIn, challenge)),
      expectedOrigin: origin,
      expectedRPID: new URL(origin).hostname,
      credential: { id, counter, publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')) },
    })
    return verified ? authenticationInfo.newCounter : null
  } catch {
    return null // the library throws for each fault of the answer
  }
}

const signInAgain = 'Sign out and in again first: passkeys can be added only within an hour of signing in.'

type Fresh = { readonly access: Access; readonly session: SessionRecord }

/**
 * The session of a person who signed in within the hour: a stolen one must not become a passkey, which would
 * outlive it.
 */
async function readFreshSession(
  { readSession, rates, store }: SessionDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Fresh | null> {
  const signedIn = await readSession(request)
  const session = signedIn?.session ?? null
  const limited = session && (await rates.charge(session.person.id))
  if (limited !== null) sendError(reply, 429, limited)
  else if (session === null || !isFreshSignIn(session.createdAt, store.now())) refused(reply, signInAgain)
  else if (signedIn !== null) return { access: signedIn.access, session }
  return null
}

/** For people who are signed in: the page of the account adds a passkey. */
function addRegistration(pages: FastifyInstance, deps: SessionDeps): void {
  const addRoute = (path: string, answer: typeof sendRegistrationOptions) =>
    pages.post(path, async (request, reply) => {
      const fresh = await readFreshSession(deps, request, reply)
      return fresh === null ? reply : answer(deps, { ...fresh, request, reply })
    })
  addRoute('/account/passkeys/options', sendRegistrationOptions)
  addRoute('/account/passkeys', addPasskey)
}

type FreshExchange = Fresh & { readonly request: FastifyRequest; readonly reply: FastifyReply }

async function sendRegistrationOptions(
  deps: SessionDeps,
  { session, request, reply }: FreshExchange,
): Promise<FastifyReply> {
  const { generateRegistrationOptions } = await load()
  const { id, name } = session.person
  const options = await generateRegistrationOptions({
    rpName: 'Postern',
    rpID: new URL(ownOrigin(deps, request)).hostname,
    userName: name,
    userDisplayName: name,
    userID: new Uint8Array(Buffer.from(id)),
    attestationType: 'none',
    excludeCredentials: (await deps.store.listPasskeys(id)).map((passkey) => ({ id: passkey.id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: algorithms,
  })
  await keep(deps, session.id, options.challenge)
  return sendDocument(reply, options)
}

async function addPasskey(
  deps: SessionDeps,
  { access, session, request, reply }: FreshExchange,
): Promise<FastifyReply> {
  const sent = readDocument<{ name?: unknown; response?: RegistrationResponseJSON }>(request)
  const name = String(sent?.name ?? '')
    .trim()
    .slice(0, nameMax)
  if (name === '' || hasControls(name)) return refused(reply, 'Give the passkey a name.')
  const credential = sent?.response && (await verifyCredential(deps, { request, session }, sent.response))
  if (credential == null) return refused(reply, "The authenticator's answer could not be verified or came too late.")
  if (!(await deps.store.addPasskey({ ...credential, name, person: session.person.id }, access.actor)))
    return refused(
      reply,
      `This passkey is already registered, you have ${passkeysMax} passkeys, or you sign in through an OpenID provider.`,
    )
  return sendDocument(reply, { to: '/account?done=passkey_added' })
}

/**
 * Browsers are asked for no attestation. To check certificates, the library would fetch what they name, so an
 * answer that brings some is refused before.
 */
async function isWithoutCertificates({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
  const format = attestation.get('fmt')
  return format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined)
}

async function verifyCredential(
  deps: SessionDeps,
  { request, session }: Pick<FreshExchange, 'request' | 'session'>,
  response: RegistrationResponseJSON,
): Promise<Pick<PasskeyRecord, 'id' | 'publicKey' | 'counter'> | null> {
  const { verifyRegistrationResponse } = await load()
  const origin = ownOrigin(deps, request)
  try {
    if (!(await isWithoutCertificates(response))) return null
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: (challenge) => deps.store.takeNonce(digest(session.id, challenge)),
      expectedOrigin: origin,
      expectedRPID: new URL(origin).hostname,
      supportedAlgorithmIDs: algorithms,
    })
    if (!verified || registrationInfo === undefined) return null
    const { id, publicKey, counter } = registrationInfo.credential
    return { id, counter, publicKey: Buffer.from(publicKey).toString('base64url') }
  } catch {
    return null // the library throws for each fault of the answer
  }
}
