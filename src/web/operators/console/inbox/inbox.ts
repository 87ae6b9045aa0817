/**
 * The dev inbox: captured emails as pages of the console, and as JSON for tests. It shows live links,
 * so it listens on loopback unless `POSTERN_CONSOLE_PUBLIC` is `yes`, and answers loopback Hosts only. An
 * email's HTML is shown in a sandboxed frame whose policy runs nothing.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import {
  type CapturedEmail,
  type CaptureRelay,
  capturedMax,
} from '../../../../delivery/relay/capture-relay.ts'
import { sendError, sendJson } from '../../../http/listener.ts'
import { sendFrame } from '../respond.ts'
import { addPage, type PageDeps, PageFailed, type Visit } from '../visit.ts'
import { emailPage, listPage } from './pages.ts'
import { presentEmail, presentSummary } from './present.ts'

export type InboxDeps = { readonly captured: Pick<CaptureRelay, 'list' | 'find'> }

/** Adds the inbox to the pages of the console, which guard it. */
export function addInbox(pages: FastifyInstance, deps: InboxDeps, pageDeps: PageDeps): void {
  addPages(pages, deps, pageDeps)
  addApi(pages, deps)
}

const message = `There is no such email here; the inbox keeps the newest ${capturedMax}, until dev mode stops.`
const answerNotFound = (reply: FastifyReply): FastifyReply =>
  sendError(reply, 404, { code: 'no_such_email', message })

function addPages(pages: FastifyInstance, { captured }: InboxDeps, pageDeps: PageDeps): void {
  const find = ({ params }: Visit): CapturedEmail => {
    const email = captured.find(params.id ?? '')
    if (email === undefined) throw new PageFailed({ code: 'not_found', message })
    return email
  }
  addPage(pages, pageDeps, 'GET /inbox', (visit) => listPage(captured.list(), visit))
  addPage(pages, pageDeps, 'GET /inbox/:id', (visit) => emailPage(find(visit), visit))
  pages.get<{ Params: { id: string } }>('/inbox/:id/html', (request, reply) => {
    const email = captured.find(request.params.id)
    return email === undefined ? answerNotFound(reply) : sendFrame(reply, email.html)
  })
}

function addApi(pages: FastifyInstance, { captured }: InboxDeps): void {
  const answer = (reply: FastifyReply, email: CapturedEmail | undefined) =>
    email === undefined ? answerNotFound(reply) : sendJson(reply, 200, JSON.stringify(presentEmail(email)))
  pages.get('/api/inbox', (_request, reply) =>
    sendJson(reply, 200, JSON.stringify(captured.list().map(presentSummary))),
  )
  pages.get<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) =>
    answer(reply, captured.find(request.params.id)),
  )
  pages.get<{ Querystring: { to?: string } }>('/api/inbox/latest', (request, reply) => {
    const { to } = request.query
    const isWanted = (email: CapturedEmail) =>
      to === undefined || email.to.toLowerCase() === String(to).toLowerCase()
    return answer(reply, captured.list().find(isWanted))
  })
}
