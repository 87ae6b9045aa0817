/**
 * The links listener: the pages behind hosted links. GET and HEAD change nothing and never redirect;
 * only the button (a POST for https) leads on. Each view checks the app again. Everything that is not
 * a valid link gets one neutral 404, and an empty one at a domain that no app uses.
 */
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type App, parseSlug } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import { findDestination, formatHostedPath } from '../../domain/app/hosted-link.ts'
import { bareHost } from '../../domain/client-network.ts'
import type { AppId } from '../../domain/id.ts'
import { LruMap } from '../../domain/lru-map.ts'
import type { SharedRead } from '../../domain/remembered.ts'
import type { AuthLink } from '../../domain/request/auth-link.ts'
import type { Purpose } from '../../domain/request/email-content.ts'
import type { EmailType } from '../../domain/request/email-kinds.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import { isNonce, makeReachProof, proofPath } from '../../store/crypto/reach-proof.ts'
import { openLink } from '../../store/crypto/sealed-link.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { chooseLanguage, loadLanguages } from '../../templates/locales/choose-language.ts'
import { type Language, languageOf } from '../../templates/locales/locales.ts'
import {
  expiredPage,
  type HostedPage,
  openPage,
  unavailablePage,
  unknownPage,
} from '../../templates/pages/hosted-page.ts'
import { type ListenerDeps, newListener } from '../http/listener.ts'

export type LinksDeps = ListenerDeps & {
  readonly store: Pick<Store, 'findAppBySlug' | 'now'>
  /** The link domains of apps. */
  readonly linkDomains: SharedRead<ReadonlySet<string>>
  readonly ring: KeyRing
  /** The base URL of hosted links: if it has a path, the pages are served below that path too. */
  readonly baseUrl: string
}

/** The path holds a link of up to 8,192 characters, percent-encoded and sealed. */
const headerBytesMax = 64 * 1024

type Params = { slug: string; sealed: string }
/** The link of an auth server has the sealed part in its query. */
type Query = { token?: unknown }
type LinkRequest = FastifyRequest<{ Params: Params; Querystring: Query }>

const readParams = ({ params: { slug, sealed }, query }: LinkRequest): Params =>
  sealed === undefined ? { slug, sealed: typeof query.token === 'string' ? query.token : '' } : { slug, sealed }
type Opened =
  | {
      readonly kind: 'open'
      readonly app: App
      readonly locale: string
      readonly type: EmailType
      readonly purpose: Purpose | undefined
      readonly destination: AuthLink
    }
  | { readonly kind: 'expired'; readonly app: App; readonly locale: string; readonly expiredAt: number }
  | { readonly kind: 'unknown' }

export function newLinksListener(deps: LinksDeps): FastifyInstance {
  loadLanguages()
  const opener = new LinkOpener(deps)
  const listener = newListener({
    emit: deps.emit,
    isProxy: deps.isProxy,
    notFound: (request, reply) => answerUnknown(deps, { request, reply }),
    headerBytesMax,
    onError: (error, request, reply) =>
      error instanceof StoreUnavailable ? answerUnavailable(deps, error, { request, reply }) : null,
  })
  const basePath = new URL(deps.baseUrl).pathname.replace(/\/+$/, '')
  // A proxy may pass the path of the base URL on, or strip it.
  for (const prefix of new Set([basePath, ''])) {
    for (const path of [formatHostedPath(':slug', ':sealed'), '/:slug/go'])
      addLink(listener, prefix + path, { ...deps, opener })
  }
  listener.get<{ Params: { nonce: string } }>(proofPath(':nonce'), async (request, reply) => {
    const domain = findLinkDomain(deps, request)
    const { nonce } = request.params
    if (domain === null || !isNonce(nonce) || !(await deps.linkDomains.get()).has(domain))
      return answerUnknown(deps, { request, reply })
    return protect(reply, noContent)
      .header('content-type', 'text/plain')
      .send(makeReachProof(deps.ring, domain, nonce))
  })
  return listener
}

type LinkParts = LinksDeps & { readonly opener: LinkOpener }

function addLink(listener: FastifyInstance, url: string, { opener, ...deps }: LinkParts): void {
  const open = (request: LinkRequest) => opener.open(readParams(request), findLinkDomain(deps, request))
  listener.route<{ Params: Params; Querystring: Query }>({
    method: 'GET',
    url,
    handler: async (request, reply) => show(deps, { request, reply }, await open(request)),
  })
  listener.post<{ Params: Params; Querystring: Query }>(url, async (request, reply) => {
    const opened = await open(request)
    if (opened.kind !== 'open' || opened.destination.kind !== 'web' || !isPressed(request))
      return show(deps, { request, reply }, opened)
    deps.emit({ kind: 'link_viewed', result: 'pressed' })
    const { href } = opened.destination
    return protect(reply, noContent).code(303).header('location', href).send()
  })
}

/**
 * Whether the button of our page was pressed: browsers say that the request is a navigation, and from where.
 * Old browsers send none of these headers, so a request without them passes; so does a program that forges
 * them. Safari does not send `Sec-Fetch-User`; our page has no script that could press the button.
 */
function isPressed({ headers }: FastifyRequest): boolean {
  const said = (name: string, wanted: string) => headers[name] === undefined || headers[name] === wanted
  return (
    said('sec-fetch-site', 'same-origin') && said('sec-fetch-mode', 'navigate') && said('sec-fetch-dest', 'document')
  )
}

const noContent = "default-src 'none'"

/** The domain that a link must be bound to where the request arrived; null at the base URL of the service. */
function findLinkDomain({ baseUrl }: LinksDeps, { headers }: FastifyRequest): string | null {
  const domain = readHostDomain(headers.host ?? '')
  return domain === readHostDomain(new URL(baseUrl).host) ? null : domain
}

/**
 * The domain of a Host header, in lower case and without the port. Null where it is none: an address, or a
 * name without a dot, as a proxy sends that does not forward the header.
 */
function readHostDomain(host: string): string | null {
  const name = host
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
    .toLowerCase()
  return host === '' || /^[\w-]{1,63}$/.test(name) || isIP(bareHost(name)) !== 0 ? null : name
}

/** While the store does not answer, no domain is known. */
const isServed = async ({ linkDomains }: LinksDeps, domain: string): Promise<boolean> =>
  linkDomains.get().then(
    (known) => known.has(domain),
    () => false,
  )

async function answerUnknown(deps: LinksDeps, { request, reply }: Exchange): Promise<FastifyReply> {
  const domain = findLinkDomain(deps, request)
  if (domain !== null && !(await isServed(deps, domain))) return protect(reply, noContent).code(404).send()
  return sendPage(reply, 404, unknownPage(readerLanguage(request)))
}

type Exchange = { request: FastifyRequest; reply: FastifyReply }

function answerUnavailable({ emit }: LinksDeps, error: Error, { request, reply }: Exchange): FastifyReply {
  emit({ kind: 'store_unavailable', requestId: request.id, error, work: 'link' })
  return sendPage(reply.header('retry-after', '5'), 503, unavailablePage(readerLanguage(request)))
}

const slugMs = 5000
const slugsKept = 10_000

/**
 * Opens sealed links. It remembers for some seconds which app a slug names, so that a forged link is
 * refused by its seal and does not reach the store. A genuine link asks the store each time.
 */
class LinkOpener {
  readonly #deps: LinksDeps
  readonly #slugs = new LruMap<string, { readonly appId: AppId; readonly untilMs: number }>(slugsKept)

  constructor(deps: LinksDeps) {
    this.#deps = deps
  }

  async open({ slug, sealed }: Params, domain: string | null): Promise<Opened> {
    const { ring, store } = this.#deps
    const unseal = (appId: AppId) => openLink(ring, { appId, domain }, sealed)
    if (!parseSlug(slug).ok) return { kind: 'unknown' }
    const known = this.#slugs.get(slug)
    const isFresh = known !== undefined && known.untilMs > performance.now()
    const expected = isFresh ? unseal(known.appId) : null
    if (isFresh && expected === null) return { kind: 'unknown' }
    const app = await store.findAppBySlug(slug)
    const appId = app?.id ?? noApp
    this.#slugs.set(slug, { appId, untilMs: performance.now() + slugMs })
    // An unknown slug costs the same work as a forged link.
    const target = expected !== null && known?.appId === appId ? expected : unseal(appId)
    if (app === null || app.status !== 'active' || target === null) return { kind: 'unknown' }
    const destination = findDestination(target, appPolicy(app))
    if (destination === null) return { kind: 'unknown' }
    const { expiresAt, locale = app.settings.locale, purpose, type } = target
    if (expiresAt <= store.now()) return { kind: 'expired', app, locale, expiredAt: expiresAt }
    return { kind: 'open', app, locale, type, purpose, destination }
  }
}

const noApp = '' as AppId

/** Where no app is known, and with it no email: the language of the browser. */
const readerLanguage = ({ headers }: FastifyRequest): Language =>
  languageOf(chooseLanguage(headers['accept-language'] ?? '') ?? 'en')

function show(deps: LinksDeps, { request, reply }: Exchange, opened: Opened): FastifyReply | Promise<FastifyReply> {
  deps.emit({ kind: 'link_viewed', result: opened.kind === 'open' ? 'opened' : opened.kind })
  if (opened.kind === 'unknown') return answerUnknown(deps, { request, reply })
  const { settings } = opened.app
  const language = languageOf(opened.locale, settings.formOfAddress)
  if (opened.kind === 'expired') return sendPage(reply, 410, expiredPage(language, settings, opened.expiredAt))
  const { destination, purpose, type } = opened
  return sendPage(reply, 200, openPage({ ...language, app: settings, type, purpose, destination }))
}

const sendPage = (reply: FastifyReply, status: number, page: HostedPage): FastifyReply =>
  protect(reply, page.policy).code(status).header('content-type', 'text/html; charset=utf-8').send(page.body)

function protect(reply: FastifyReply, policy: string): FastifyReply {
  return reply
    .header('content-security-policy', policy)
    .header('cache-control', 'no-store')
    .header('referrer-policy', 'no-referrer')
    .header('x-robots-tag', 'noindex, nofollow')
    .header('x-content-type-options', 'nosniff')
    .header('x-frame-options', 'DENY')
}
