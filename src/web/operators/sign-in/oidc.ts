/**
 * Signing in by an OpenID provider: the code flow with PKCE, state and nonce. The library, and the provider's
 * metadata, are loaded with the first use. A person is the issuer and the subject, never an address or a
 * name. The permission comes from the groups of the ID token, anew with each sign-in.
 */

import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Configuration } from 'openid-client'
import { cleanLine } from '../../../domain/controls.ts'
import type { AppId } from '../../../domain/id.ts'
import { isReservedName } from '../../../domain/operator/audit.ts'
import type { Role } from '../../../domain/operator/management-token.ts'
import type { Permission } from '../../../store/people-store.ts'
import type { Store } from '../../../store/store.ts'
import { html } from '../../../templates/html.ts'
import { newCard } from '../console/layout.ts'
import { sendPage } from '../console/respond.ts'
import { readCookie, setCookie } from '../session.ts'
import { beginSession, newSessionFor, type OnRequest, ownOrigin, type SessionDeps, safePath } from './begin-session.ts'

/**
 * The permission of the members of a group. `app`: the slug of the only app, or null for the whole service.
 */
type GroupRole = { readonly group: string; readonly role: Role; readonly app: string | null }

export type OidcSettings = {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The claim of the ID token that lists a person's groups. */
  readonly claim: string
  readonly groups: readonly GroupRole[]
}

export type OidcSignIn = {
  /** The host of the provider, for the button. */
  readonly name: string
  readonly add: (pages: FastifyInstance, deps: SessionDeps, limited: OnRequest) => void
}

/** Over https the name keeps other hosts of the domain from planting a flow of theirs. */
const nameCookie = (origin: string): string => (origin.startsWith('https:') ? '__Host-postern-oidc' : 'postern-oidc')
const flowSeconds = 600
/** OpenID Connect Core 1.0 section 2: at most 255 ASCII characters. */
const subjectMax = 255
const callback = '/sign-in/oidc/callback'

/** A browser keeps this between leaving for the provider and coming back. */
type Flow = { readonly state: string; readonly nonce: string; readonly verifier: string; readonly to: string }

const load = () => import('openid-client')

export function newOidcSignIn(settings: OidcSettings): OidcSignIn {
  let discovered: Promise<Configuration> | null = null
  /** Asked again after a failure: the provider may have been down. */
  const discover = (): Promise<Configuration> => {
    discovered ??= discoverProvider(settings).catch((error) => {
      discovered = null
      throw error
    })
    return discovered
  }
  return {
    name: new URL(settings.issuer).host,
    add: (pages, deps, limited) => {
      const options = { onRequest: limited, exposeHeadRoute: false } // a HEAD would begin or end a sign-in
      pages.get('/sign-in/oidc', options, (request, reply) => leave(deps, discover, { request, reply }))
      pages.get(callback, options, (request, reply) => comeBack(deps, { settings, discover }, { request, reply }))
    },
  }
}

async function discoverProvider({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const { allowInsecureRequests, discovery, enableNonRepudiationChecks } = await load()
  const isLocal = issuer.startsWith('http:') // the configuration allows it for this machine alone
  return discovery(new URL(issuer), clientId, clientSecret, undefined, {
    execute: [enableNonRepudiationChecks, ...(isLocal ? [allowInsecureRequests] : [])],
  })
}

const noAnswer = 'The OpenID provider does not answer. Try again later, or use a code.'

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

/** Sends the browser to the provider. */
async function leave(
  deps: SessionDeps,
  discover: () => Promise<Configuration>,
  { request, reply }: Exchange,
): Promise<FastifyReply> {
  const client = await load()
  const provider = await discover().catch(() => null)
  if (provider === null) return refuse(deps, { request, reply }, noAnswer)
  const flow: Flow = {
    state: client.randomState(),
    nonce: client.randomNonce(),
    verifier: client.randomPKCECodeVerifier(),
    to: safePath((request.query as { to?: string }).to),
  }
  const origin = ownOrigin(deps, request)
  const value = Buffer.from(JSON.stringify(flow)).toString('base64url')
  setCookie(reply, origin, { name: nameCookie(origin), value, maxAgeS: flowSeconds })
  const address = client.buildAuthorizationUrl(provider, {
    redirect_uri: `${origin}${callback}`,
    scope: 'openid profile email',
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: 'S256',
  })
  return reply.header('cache-control', 'no-store').redirect(address.href, 303)
}

type Provider = { readonly settings: OidcSettings; readonly discover: () => Promise<Configuration> }

/** Takes the browser that the provider sent back. */
async function comeBack(
  deps: SessionDeps,
  { settings, discover }: Provider,
  exchange: Exchange,
): Promise<FastifyReply> {
  const { request, reply } = exchange
  const origin = ownOrigin(deps, request)
  const flow = readFlow(request, origin)
  setCookie(reply, origin, { name: nameCookie(origin), value: '', maxAgeS: 0 })
  if (flow === null)
    return refuse(deps, exchange, 'This sign-in took too long or was started in another browser. Start again.')
  // A provider might not use its codes up.
  const used = hash('sha256', `oidc ${flow.state}`, 'base64url')
  if (!(await deps.store.keepNonce(used, deps.store.now() + flowSeconds * 1000)))
    return refuse(deps, exchange, 'This sign-in was used already. Start again.')
  const provider = await discover().catch(() => null)
  if (provider === null) return refuse(deps, exchange, noAnswer)
  const claims = await readClaims(provider, new URL(request.url, origin), flow)
  if (claims === null) return refuse(deps, exchange, "The OpenID provider's answer could not be verified. Start again.")
  const groups = readGroups(claims[settings.claim])
  const permission = await findPermission(deps.store, settings.groups, groups)
  if (permission === null)
    return refuse(
      deps,
      exchange,
      `None of your groups has access to this console. The claim "${settings.claim}" lists: ${cleanLine(groups.join(', '), groupsMax) || 'none'}.`,
    )
  const { secret, ...session } = newSessionFor(request)
  if (claims.sub === '' || claims.sub.length > subjectMax)
    return refuse(deps, exchange, "The OpenID provider's answer names no person. Tell your admin.")
  const oidc = { issuer: settings.issuer, subject: claims.sub }
  if (!deps.rates.chargeSignIn(`${oidc.issuer} ${oidc.subject}`))
    return refuse(deps, exchange, 'You have signed in too often within the hour. Try again later.')
  const begun = await deps.store.signInByOidc({ name: chooseName(claims), oidc, ...permission }, session)
  if (begun === 'disabled') return refuse(deps, exchange, 'An admin has disabled your access.')
  beginSession(deps, exchange, { secret, method: 'oidc' })
  return reply.redirect(safePath(flow.to), 303)
}

function readFlow(request: FastifyRequest, origin: string): Flow | null {
  try {
    const flow = JSON.parse(Buffer.from(readCookie(request, nameCookie(origin)) ?? '', 'base64url').toString('utf8'))
    const texts = [flow.state, flow.nonce, flow.verifier, flow.to]
    return texts.every((text) => typeof text === 'string' && text !== '') ? flow : null
  } catch {
    return null
  }
}

type Claims = Readonly<Record<string, unknown>> & { readonly sub: string }

/** The claims of the ID token; null if state, nonce, audience, signature or anything else does not hold. */
async function readClaims(provider: Configuration, address: URL, flow: Flow): Promise<Claims | null> {
  const { authorizationCodeGrant } = await load()
  try {
    const tokens = await authorizationCodeGrant(provider, address, {
      expectedState: flow.state,
      expectedNonce: flow.nonce,
      pkceCodeVerifier: flow.verifier,
      idTokenExpected: true,
    })
    return tokens.claims() ?? null
  } catch {
    return null // the library throws for each fault of the answer
  }
}

const readGroups = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((group): group is string => typeof group === 'string')

/** The first rule that fits gives the role; all rules of this role that fit give the apps. */
async function findPermission(
  store: Pick<Store, 'findApp'>,
  rules: readonly GroupRole[],
  groups: readonly string[],
): Promise<Permission | null> {
  const fitting = rules.filter(({ group }) => groups.includes(group))
  const [first] = fitting
  if (first === undefined) return null
  const same = fitting.filter(({ role }) => role === first.role)
  if (same.some(({ app }) => app === null)) return { role: first.role, apps: null }
  const ids: AppId[] = []
  for (const { app } of same) {
    const found = await store.findApp(app ?? '')
    if (found !== null) ids.push(found.id)
  }
  return ids.length === 0 ? null : { role: first.role, apps: ids }
}

const nameMax = 80
/** Characters of the groups that the page lists to somebody who has no access. */
const groupsMax = 1000

/** A name for lists and the audit; it decides nothing. */
function chooseName(claims: Claims): string {
  const given = [claims.preferred_username, claims.name, claims.email, claims.sub]
  const name = given.find((text): text is string => typeof text === 'string' && text.trim() !== '') ?? 'person'
  const clean = cleanLine(name.trim().slice(0, nameMax), nameMax).trim()
  if (clean === '') return 'person'
  return isReservedName(clean) ? `person ${clean}` : clean
}

function refuse({ emit }: SessionDeps, { request, reply }: Exchange, message: string): FastifyReply {
  emit({ kind: 'console_sign_in', method: 'oidc', result: 'refused', requestId: request.id })
  const body = html`<p class="problem" role="alert">${message}</p>
<p><a class="button" href="/sign-in">Back to sign-in</a></p>`
  return sendPage(reply, 403, newCard('Not signed in', body))
}
