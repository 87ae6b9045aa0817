/**
 * The links listener: the pages behind hosted links. GET and HEAD change nothing, never redirect
 * and burn nothing; only a press of the button (a POST for https) leads on. At each view the app
 * is judged again. Whatever is not a link of ours gets one neutral 404.
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { checkLinkAllowed } from '../../domain/app/allowed-url.ts'
import { type App, appPolicy } from '../../domain/app/app.ts'
import type { AppId } from '../../domain/id.ts'
import { type AuthLink, parseAuthLink } from '../../domain/request/auth-link.ts'
import type { KeyRing } from '../../store/crypto/key-ring.ts'
import { openLink } from '../../store/crypto/sealed-link.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { languageOf } from '../../templates/emails/render-email.ts'
import {
  expiredPage,
  openPage,
  type Page,
  unavailablePage,
  unknownPage,
} from '../../templates/pages/hosted-page.ts'
import { newListener } from '../http/listener.ts'

export type LinksDeps = {
  readonly store: Pick<Store, 'findApp' | 'now'>
  readonly ring: KeyRing
  readonly onBug: (error: Error) => void
  /** The diagnosis behind a 503, for the log. */
  readonly onUnavailable: (error: Error) => void
}

/** A link of 8,192 characters, percent-encoded and sealed, is in the path. */
const headerBytesMax = 64 * 1024

type Params = { slug: string; sealed: string }
type Opened =
  | { readonly kind: 'open'; readonly app: App; readonly destination: AuthLink }
  | { readonly kind: 'expired'; readonly app: App }
  | { readonly kind: 'unknown' }

export function newLinksListener(deps: LinksDeps): FastifyInstance {
  const notFound = (_request: FastifyRequest, reply: FastifyReply) =>
    sendPage(reply, 404, unknownPage(languageOf('en')))
  const app = newListener({
    onBug: deps.onBug,
    notFound,
    headerBytesMax,
    onError: (error, _request, reply) =>
      error instanceof StoreUnavailable ? unavailable(deps, error, reply) : null,
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async (_request: unknown, body: Readable) => {
    for await (const _chunk of body); // the button's form is empty; whatever comes is not looked at
  })
  app.route<{ Params: Params }>({
    method: ['GET', 'HEAD'],
    url: '/:slug/:sealed',
    handler: async (request, reply) => show(reply, await open(deps, request.params)),
  })
  app.post<{ Params: Params }>('/:slug/:sealed', async (request, reply) => {
    const opened = await open(deps, request.params)
    if (opened.kind !== 'open' || opened.destination.kind !== 'web') return show(reply, opened)
    return protect(reply, "default-src 'none'").code(303).header('location', opened.destination.href).send()
  })
  return app
}

function unavailable({ onUnavailable }: LinksDeps, error: Error, reply: FastifyReply): FastifyReply {
  onUnavailable(error)
  return sendPage(reply.header('retry-after', '5'), 503, unavailablePage(languageOf('en')))
}

async function open({ store, ring }: LinksDeps, { slug, sealed }: Params): Promise<Opened> {
  const found = await store.findApp(slug)
  // An unknown slug costs the same work as a forged link.
  const target = openLink(ring, found?.id ?? ('' as AppId), sealed)
  if (found === null || found.slug !== slug || found.status !== 'active' || target === null)
    return { kind: 'unknown' }
  const policy = appPolicy(found)
  const destination = parseAuthLink(target.destination, policy.schemes)
  if (!destination.ok || checkLinkAllowed(destination.value, policy) !== null) return { kind: 'unknown' }
  if (target.expiresAt <= store.now()) return { kind: 'expired', app: found }
  return { kind: 'open', app: found, destination: destination.value }
}

function show(reply: FastifyReply, opened: Opened): FastifyReply {
  if (opened.kind === 'unknown') return sendPage(reply, 404, unknownPage(languageOf('en')))
  const { settings } = opened.app
  const voice = languageOf(settings.locale)
  if (opened.kind === 'expired') return sendPage(reply, 410, expiredPage(voice, settings))
  const { destination } = opened
  const { scheme, authority } = destination
  const place =
    destination.kind === 'app' ? `${scheme}:${authority ? `//${authority}` : ''}` : `${scheme}://${authority}`
  return sendPage(reply, 200, openPage({ ...voice, app: settings, destination, place }))
}

const sendPage = (reply: FastifyReply, status: number, page: Page): FastifyReply =>
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
