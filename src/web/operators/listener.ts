/**
 * The listener for operators: the console for people, the management API under `/v1`, and in dev mode the
 * inbox.
 */

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { keepDays, operatorBodyBytesMax } from '../../domain/bounds.ts'
import { SharedRead } from '../../domain/remembered.ts'
import { refusalsMax } from '../../domain/request/refused-request.ts'
import { newFingerprints } from '../../management/fingerprints.ts'
import type { OperationError } from '../../management/operation/result.ts'
import { newLocalRunner } from '../../management/perform.ts'
import type { EventStream } from '../../observe/events.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { type Html, html } from '../../templates/html.ts'
import { type ListenerDeps, newListener, sendError } from '../http/listener.ts'
import { addManagementApi, type ManagementApiDeps, refuseOtherRoutes } from './api/routes.ts'
import { addInbox, type InboxDeps } from './console/dev-inbox/inbox.ts'
import { withoutIssues } from './console/form.ts'
import { newCard } from './console/layout.ts'
import { Live } from './console/live.ts'
import { addLive } from './console/live-route.ts'
import { addRoutes } from './console/pages/routes.ts'
import { addAssets, sendPage } from './console/respond.ts'
import { newTurns } from './console/turns.ts'
import { type PageDeps, PageFailed, renderAgain, sendErrorPage, toHttpStatus } from './console/visit.ts'
import { newFormNonces } from './form-nonces.ts'
import { type ConsoleAddress, guardPages } from './guard.ts'
import { OperatorRates } from './rates.ts'
import { devSession, newSessionReader } from './session.ts'
import { newOidcSignIn, type OidcSettings } from './sign-in/oidc.ts'
import { addSignIn } from './sign-in/sign-in.ts'

export type ConsoleDeps = Pick<ManagementApiDeps, 'management'> &
  Pick<ListenerDeps, 'isProxy'> & {
    readonly events: EventStream
    readonly address: ConsoleAddress
    /** Null unless people sign in by an OpenID provider. */
    readonly oidc: OidcSettings | null
    /** The dev inbox; null for none. */
    readonly inbox: InboxDeps | null
    /** Nobody signs in. */
    readonly isDev: boolean
  }

/** Pages that are drawn at a time. */
const drawnMax = 2

/** How long the sign-in page may take to learn of the first passkey. */
const passkeysMs = 1000

export function newConsoleListener(deps: ConsoleDeps): FastifyInstance {
  const { emit } = deps.events
  const pageDeps = newPageDeps(deps)
  const listener = newListener({
    emit,
    isProxy: deps.isProxy,
    bodyBytesMax: operatorBodyBytesMax,
    notFound: (request, reply) => answerNotFound(pageDeps, { request, reply }),
  })
  addManagementApi(listener, { management: deps.management, emit })
  // A context of its own, whose guard does not concern the management API: that takes tokens, which no
  // browser sends by itself.
  listener.register(async (pages) => addPages(pages, deps, pageDeps))
  return listener
}

function newPageDeps({ address, events, inbox, isDev, management }: ConsoleDeps): PageDeps {
  const { consoleUrl, links, queueMax, store, version } = management
  const apiUrl = management.apiUrl ?? 'https://YOUR-POSTERN'
  return {
    newRunner: (access) => newLocalRunner(management, access),
    now: () => store.now(),
    forms: newFormNonces(store),
    readSession: isDev ? devSession : newSessionReader(store, address),
    isDev,
    live: new Live(newFingerprints(management), events),
    shell: { version, apiUrl, consoleUrl, queueMax, linksUrl: links.baseUrl, hasInbox: inbox !== null },
    rates: new OperatorRates(),
    takeTurn: newTurns(drawnMax),
  }
}

function addPages(pages: FastifyInstance, deps: ConsoleDeps, pageDeps: PageDeps): void {
  const { address, events, inbox, isDev, isProxy, management, oidc } = deps
  const { store } = management
  guardPages(pages, address, (request, reply, error) =>
    wantsPage(request)
      ? sendPage(reply, 403, newCard('Not from here', html`<p class="lead">${error.message}</p>`))
      : sendError(reply, 403, error),
  )
  pages.setErrorHandler((error: FastifyError, request, reply) => answerError(pageDeps, deps, { error, request, reply }))
  addAssets(pages)
  addRoutes(pages, pageDeps)
  addLive(pages, pageDeps)
  if (inbox !== null) addInbox(pages, inbox, pageDeps)
  if (!isDev)
    addSignIn(pages, {
      ...{ ...pageDeps, store, address, isProxy, emit: events.emit },
      hasPasskeys: new SharedRead(
        async () => (await store.listPasskeys(null)).length > 0,
        () => passkeysMs,
      ),
      oidc: oidc === null ? null : newOidcSignIn(oidc),
    })
}

const wantsPage = ({ headers, url }: FastifyRequest): boolean =>
  /\btext\/html\b/.test(headers.accept ?? '') && !url.startsWith('/v1')

/** Programs get JSON, and people a page; an address of a page may end in a slash. */
function answerNotFound(pageDeps: PageDeps, { request, reply }: Exchange): FastifyReply | Promise<FastifyReply> {
  if (!wantsPage(request)) return refuseOtherRoutes(request, reply)
  // `//` is no path of a URL.
  const { pathname, search } = URL.parse(request.url, 'http://console') ?? { pathname: '/', search: '' }
  const plain = pathname.replace(/\/$/, '')
  if (request.method === 'GET' && plain !== pathname && plain !== '' && !plain.startsWith('//'))
    return reply.redirect(`${plain}${search}`, 308)
  const body = notFoundBody('There is nothing at this address.', request.url)
  return sendErrorPage(pageDeps, request, { reply, page: { status: 404, title: 'Not found', body } })
}

/** The page to go on with, by where the address led. */
const lists: readonly (readonly [beginning: string, address: string, label: string, cause?: string])[] = [
  ['/apps', '/apps', 'All apps', 'It may have been deleted, or you may not have access to it.'],
  [
    '/emails',
    '/emails',
    'All emails',
    'If the id was shortened or mistyped, search for the address of the recipient instead.',
  ],
  [
    '/refusals',
    '/apps',
    'All apps',
    `Only the newest ${refusalsMax} refused requests of each app are kept, besides ${refusalsMax} that were over a limit, for ${keepDays} days at most.`,
  ],
  ['/audit', '/audit', 'The whole audit'],
  ['/settings', '/settings', 'Settings'],
]

const findList = (path: string) => lists.find(([beginning]) => path.startsWith(beginning)) ?? ['', '/', 'Overview']

/** Likely causes, for an address where there is nothing. */
const notFoundBody = (message: string, path: string): Html => {
  const [, , , cause = 'The address may be mistyped or old.'] = findList(path)
  return errorBody(message, path, {
    lines: [cause, 'The search at the top finds apps, emails and requests.'],
  })
}

/** @param again the address to try again */
function errorBody(
  message: string,
  path = '/',
  { lines = [], again = null }: { readonly lines?: readonly string[]; readonly again?: string | null } = {},
): Html {
  const [, address, label] = findList(path)
  const listed = lines.length === 0 ? html`` : html`<ul>${lines.map((line) => html`<li>${line}</li>`)}</ul>`
  return html`<p class="lead">${message}</p>${listed}<p>${again === null ? html`` : html`<a class="button" href="${again}">Try again</a> `}<a class="button" href="${address}">${label}</a></p>`
}

const titles: Partial<Record<OperationError['code'], string>> = {
  not_found: 'Not found',
  not_permitted: 'Not permitted',
  invalid_request: 'Invalid request',
  cursor_mismatch: 'This list has changed',
  too_many_requests: 'Slow down',
}

const whoPermits = 'An admin of the service can change your role and your apps, under Settings, People.'

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

async function answerError(
  pageDeps: PageDeps,
  { events }: ConsoleDeps,
  { error, request, reply }: Exchange & { readonly error: FastifyError },
): Promise<FastifyReply> {
  if (request.raw.destroyed && !request.raw.complete) return reply.hijack() // the client disconnected
  const send = (status: number, title: string, body: Html) =>
    sendErrorPage(pageDeps, request, { reply, page: { status, title, body } })
  if (error instanceof PageFailed) {
    const shown = error.error
    const lines = (shown.issues ?? []).map(({ field, message }) => `${field}: ${message}`)
    const message = withoutIssues(shown.message)
    const body =
      shown.code === 'not_found'
        ? notFoundBody(message, request.url)
        : errorBody(message, request.url, { lines: shown.code === 'not_permitted' ? [whoPermits] : lines })
    return send(toHttpStatus(shown), titles[shown.code] ?? 'This cannot be done', body)
  }
  if (error instanceof StoreUnavailable) {
    events.emit({ kind: 'store_unavailable', requestId: request.id, error, work: 'page' })
    const cause = 'The log and /readyz of the ops port name the cause.'
    const body =
      request.method === 'GET'
        ? errorBody(`Nothing was changed. ${cause}`, '/', { again: request.url })
        : html`${errorBody(`This may or may not have been saved. ${cause} Your entries are kept: send them again once the database answers.`)}${renderAgain(request)}`
    return send(503, 'The database does not answer', body)
  }
  if ((error.statusCode ?? 500) < 500)
    return send(
      400,
      'Bad request',
      errorBody('The browser sent something that this page cannot read. Go back and try again.'),
    )
  events.emit({ kind: 'bug', doing: 'drawing a page', error, requestId: request.id })
  const message = `The error is in Postern’s log, under ${request.id}.`
  return send(500, 'Postern failed', errorBody(message))
}
