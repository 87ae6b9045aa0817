/**
 * The listener for operators: the console for people, the management API under `/v1`, and in dev mode the
 * inbox.
 */

import type { Readable } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { operatorBodyBytesMax } from '../../domain/bounds.ts'
import { newFingerprints } from '../../management/fingerprints.ts'
import { newLocalRunner } from '../../management/operation/perform.ts'
import type { OperationError } from '../../management/operation/result.ts'
import { SharedRead } from '../../management/shared-read.ts'
import type { EventStream } from '../../observe/events.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { html } from '../../templates/html.ts'
import { newListener } from '../http/listener.ts'
import { readBody } from '../http/read-body.ts'
import { addManagementApi, type ManagementApiDeps, refuseOtherRoutes } from './api/routes.ts'
import { addInbox, type InboxDeps } from './console/inbox/inbox.ts'
import { newCard } from './console/layout.ts'
import { Live } from './console/live.ts'
import { addLive } from './console/live-route.ts'
import { addRoutes } from './console/pages/routes.ts'
import { problem } from './console/parts.ts'
import { addAssets, sendPage } from './console/respond.ts'
import { type PageDeps, PageFailed, toHttpStatus } from './console/visit.ts'
import { newFormNonces } from './form-nonces.ts'
import { OperatorRates } from './rates.ts'
import { type ConsoleAddress, guardPages } from './sign-in/guard.ts'
import { newOidcSignIn, type OidcSettings } from './sign-in/oidc.ts'
import { devSession, newSessionReader } from './sign-in/session.ts'
import { addSignIn } from './sign-in/sign-in.ts'

export type ConsoleDeps = Pick<ManagementApiDeps, 'management'> & {
  readonly events: EventStream
  readonly address: ConsoleAddress
  /** The address of the API, for examples. */
  readonly apiUrl: string
  /** Null unless people sign in by an OpenID provider. */
  readonly oidc: OidcSettings | null
  /** The dev inbox; null for none. */
  readonly inbox: InboxDeps | null
  /** Nobody signs in. */
  readonly isDev: boolean
}

/** For how long a page of the sign-in may not know of the first passkey. */
const passkeysMs = 1000

export function newConsoleListener(deps: ConsoleDeps): FastifyInstance {
  const { emit } = deps.events
  const listener = newListener({ emit, notFound: answerNotFound })
  listener.removeAllContentTypeParsers()
  listener.addContentTypeParser('*', (_request: unknown, stream: Readable) =>
    readBody(stream, operatorBodyBytesMax),
  )
  addManagementApi(listener, { management: deps.management, emit })
  // A context of its own, whose guard does not concern the management API: that takes tokens, which no
  // browser sends by itself.
  listener.register(async (pages) => addPages(pages, deps))
  return listener
}

function addPages(pages: FastifyInstance, deps: ConsoleDeps): void {
  const { address, apiUrl, events, inbox, isDev, management, oidc } = deps
  const { consoleUrl, links, queueMax, store, version } = management
  const readSession = isDev ? devSession : newSessionReader(store, address)
  const pageDeps: PageDeps = {
    newRunner: (access) => newLocalRunner(management, access),
    now: () => store.now(),
    forms: newFormNonces(store),
    readSession,
    isDev,
    live: new Live(newFingerprints(management), events),
    shell: { version, apiUrl, consoleUrl, queueMax, linksUrl: links.baseUrl, hasInbox: inbox !== null },
    rates: new OperatorRates(),
  }
  guardPages(pages, address)
  pages.setErrorHandler((error: FastifyError, request, reply) => answerError(deps, error, { request, reply }))
  addAssets(pages)
  addRoutes(pages, pageDeps)
  addLive(pages, pageDeps)
  if (inbox !== null) addInbox(pages, inbox, pageDeps)
  if (!isDev)
    addSignIn(pages, {
      ...{ store, address, readSession, rates: pageDeps.rates, emit: events.emit },
      hasPasskeys: new SharedRead(
        async () => (await store.listPasskeys(null)).length > 0,
        () => passkeysMs,
      ),
      oidc: oidc === null ? null : newOidcSignIn(oidc),
    })
}

/** Programs get JSON, and people a page. */
function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const wantsPage = /\btext\/html\b/.test(request.headers.accept ?? '') && !request.url.startsWith('/v1')
  if (!wantsPage) return refuseOtherRoutes(request, reply)
  return sendPage(reply, 404, errorPage('Not found', 'There is nothing at this address.'))
}

const errorPage = (title: string, message: string) =>
  newCard(title, html`<p class="lead">${message}</p><p><a class="button" href="/">To the overview</a></p>`)

const titles: Partial<Record<OperationError['code'], string>> = {
  not_found: 'Not found',
  not_permitted: 'Not permitted',
  invalid_request: 'This cannot be done',
  cursor_mismatch: 'This list has changed',
}

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

function answerError(
  { events }: ConsoleDeps,
  error: FastifyError,
  { request, reply }: Exchange,
): FastifyReply {
  if (request.raw.destroyed && !request.raw.complete) return reply.hijack() // the client disconnected
  if (error instanceof PageFailed) {
    const shown = error.error
    const body = html`${problem(shown)}<p><a class="button" href="/">To the overview</a></p>`
    return sendPage(reply, toHttpStatus(shown), newCard(titles[shown.code] ?? 'This cannot be done', body))
  }
  if (error instanceof StoreUnavailable) {
    events.emit({ kind: 'store_unavailable', requestId: request.id, error, work: 'page' })
    const message =
      'Your change may or may not have been saved: look before you repeat it. For the cause, see the log and /readyz of the ops port, or run "postern doctor".'
    return sendPage(reply, 503, errorPage('The store does not answer', message))
  }
  if ((error.statusCode ?? 500) < 500)
    return sendPage(reply, 400, errorPage('Bad request', 'The request cannot be read.'))
  events.emit({ kind: 'bug', doing: 'drawing a page', error, requestId: request.id })
  const message = `Postern failed. Its log has the reason, under ${request.id}.`
  return sendPage(reply, 500, errorPage('Postern failed', message))
}
