/**
 * The inbox of dev mode: captured emails as pages, and as JSON for tests. It shows live links, so it
 * listens on loopback unless `POSTERN_CONSOLE_PUBLIC` is `yes`, and answers loopback Hosts only. An email's HTML is shown in a sandboxed frame whose policy runs nothing.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type CapturedEmail, type CaptureRelay, capturedMax } from '../../delivery/relay/capture-relay.ts'
import type { Store } from '../../store/store.ts'
import { sendError, sendJson } from '../http/listener.ts'
import { guardInbox } from './guard.ts'
import { emailPage, listPage, script, stylesheet, type View, views } from './pages.ts'
import { presentEmail, presentSummary } from './present.ts'

export type InboxDeps = {
  readonly captured: Pick<CaptureRelay, 'list' | 'find'>
  readonly store: Pick<Store, 'findEmail'>
}

const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const framePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"

/** Adds the inbox to the listener for operators, which then answers loopback names only. */
export function addInbox(listener: FastifyInstance, deps: InboxDeps): void {
  guardInbox(listener)
  addPages(listener, deps)
  addApi(listener, deps)
}

/** The referrer policy is `same-origin`: under `no-referrer` browsers send `Origin: null` with our own forms. */
function send(reply: FastifyReply, type: string, body: string, policy = pagePolicy): FastifyReply {
  reply.header('content-type', `${type}; charset=utf-8`).header('content-security-policy', policy)
  reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'same-origin')
  return reply.header('cache-control', 'no-store').send(body)
}

const message = `There is no such email here; the inbox keeps the newest ${capturedMax}, until dev mode stops.`
const answerNotFound = (reply: FastifyReply): FastifyReply =>
  sendError(reply, 404, { code: 'no_such_email', message })

function addPages(listener: FastifyInstance, { captured, store }: InboxDeps): void {
  listener.get('/', (_request, reply) => send(reply, 'text/html', listPage(captured.list())))
  listener.get('/inbox.css', (_request, reply) => send(reply, 'text/css', stylesheet))
  listener.get('/inbox.js', (_request, reply) => send(reply, 'text/javascript', script))
  listener.get<{ Params: { id: string }; Querystring: { view?: string } }>(
    '/email/:id',
    async (request, reply) => {
      const email = captured.find(request.params.id)
      if (email === undefined) return answerNotFound(reply)
      const view: View = views.find((name) => name === request.query.view) ?? 'html'
      return send(reply, 'text/html', emailPage(email, await store.findEmail(email.id), view))
    },
  )
  listener.get<{ Params: { id: string } }>('/email/:id/html', (request, reply) => {
    const email = captured.find(request.params.id)
    if (email === undefined) return answerNotFound(reply)
    // Links of the email open in a new tab, not inside the frame.
    const page = email.html.replace('<head>', '<head><base target="_blank">')
    return send(reply, 'text/html', page, framePolicy)
  })
}

function addApi(listener: FastifyInstance, { captured }: InboxDeps): void {
  const answer = (reply: FastifyReply, email: CapturedEmail | undefined) =>
    email === undefined ? answerNotFound(reply) : sendJson(reply, 200, JSON.stringify(presentEmail(email)))
  listener.get('/api/inbox', (_request, reply) =>
    sendJson(reply, 200, JSON.stringify(captured.list().map(presentSummary))),
  )
  listener.get<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) =>
    answer(reply, captured.find(request.params.id)),
  )
  listener.get<{ Querystring: { to?: string } }>('/api/inbox/latest', (request, reply) => {
    const { to } = request.query
    const isWanted = (email: CapturedEmail) =>
      to === undefined || email.to.toLowerCase() === String(to).toLowerCase()
    return answer(reply, captured.list().find(isWanted))
  })
}
