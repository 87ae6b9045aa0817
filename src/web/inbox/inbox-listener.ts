/**
 * The console of the dev mode: the inbox of captured emails, as pages and as JSON for tests. On
 * loopback only, since it shows live links; an email's HTML is shown in a sandboxed frame under a
 * policy that runs nothing.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { CaptureRelay } from '../../delivery/relay/capture-relay.ts'
import type { EmailId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { newListener, sendError, sendJson } from '../http/listener.ts'
import { type InboxEmail, presentEmail, readCaptured } from './captured-email.ts'
import { guardInbox } from './guard.ts'
import { emailPage, listPage, script, stylesheet, type View, views } from './pages.ts'

export type InboxDeps = {
  readonly captured: Pick<CaptureRelay, 'list' | 'find'>
  readonly store: Pick<Store, 'findEmail'>
  readonly onBug: (error: Error) => void
}

const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const framePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"

function send(reply: FastifyReply, type: string, body: string, policy = pagePolicy): FastifyReply {
  reply.header('content-type', `${type}; charset=utf-8`).header('content-security-policy', policy)
  reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer')
  return reply.header('cache-control', 'no-store').send(body)
}

export function newInboxListener(deps: InboxDeps): FastifyInstance {
  const app = newListener({ onBug: deps.onBug })
  guardInbox(app)
  const notFound = (reply: FastifyReply) =>
    sendError(reply, 404, {
      code: 'no_such_email',
      message: 'There is no such email here; the inbox keeps the newest 500.',
    })
  const find = async (id: string): Promise<InboxEmail | null> => {
    const captured = deps.captured.find(id)
    return captured === undefined ? null : readCaptured(captured)
  }
  app.get('/', async (_request, reply) => {
    const emails = await Promise.all(deps.captured.list().map(readCaptured))
    return send(reply, 'text/html', listPage(emails))
  })
  app.get('/inbox.css', (_request, reply) => send(reply, 'text/css', stylesheet))
  app.get('/inbox.js', (_request, reply) => send(reply, 'text/javascript', script))
  app.get<{ Params: { id: string }; Querystring: { view?: string } }>(
    '/email/:id',
    async (request, reply) => {
      const email = await find(request.params.id)
      if (email === null) return notFound(reply)
      const view: View = views.find((name) => name === request.query.view) ?? 'html'
      const record = await deps.store.findEmail(email.id as EmailId)
      return send(reply, 'text/html', emailPage(email, record, view))
    },
  )
  app.get<{ Params: { id: string } }>('/email/:id/html', async (request, reply) => {
    const email = await find(request.params.id)
    if (email === null) return notFound(reply)
    // Links of the email open beside the inbox, not inside the frame.
    return send(reply, 'text/html', email.html.replace('<head>', '<head><base target="_blank">'), framePolicy)
  })
  app.get('/api/inbox', async (_request, reply) => {
    const emails = await Promise.all(deps.captured.list().map(readCaptured))
    const rows = emails.map(({ id, app: name, type, to, subject, at }) => ({
      id,
      app: name,
      type,
      to,
      subject,
      receivedAt: new Date(at).toISOString(),
    }))
    return sendJson(reply, 200, JSON.stringify(rows))
  })
  app.get<{ Params: { id: string } }>('/api/inbox/:id', async (request, reply) => {
    const email = await find(request.params.id)
    return email === null ? notFound(reply) : sendJson(reply, 200, JSON.stringify(presentEmail(email)))
  })
  app.get<{ Querystring: { to?: string } }>('/api/inbox/latest', async (request, reply) => {
    const { to } = request.query
    const newest = deps.captured
      .list()
      .find((email) => to === undefined || email.to.toLowerCase() === String(to).toLowerCase())
    if (newest === undefined) return notFound(reply)
    return sendJson(reply, 200, JSON.stringify(presentEmail(await readCaptured(newest))))
  })
  return app
}
