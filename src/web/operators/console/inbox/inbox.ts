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
import { emailTypeNames } from '../../email-type-names.ts'
import { sendFrame, sendRaw } from '../respond.ts'
import { addPage, type PageAnswer, type PageDeps, PageFailed, type Visit } from '../visit.ts'
import { mailboxPage } from './pages.ts'
import { presentEmail, presentSummary } from './present.ts'

type Captured = Pick<CaptureRelay, 'list' | 'find' | 'markSeen' | 'delete' | 'deleteAll'>
/** `hints.curl`: a line that sends an email. */
export type InboxDeps = { readonly captured: Captured; readonly hints: { readonly curl: string | null } }

/** Adds the inbox to the pages of the console, which guard it. */
export function addInbox(pages: FastifyInstance, deps: InboxDeps, pageDeps: PageDeps): void {
  addPages(pages, deps, pageDeps)
  addApi(pages, deps)
}

const message = `This email is not in the inbox, which keeps the newest ${capturedMax} until dev mode stops.`
const answerNotFound = (reply: FastifyReply): FastifyReply =>
  sendError(reply, 404, { code: 'no_such_email', message })

function addPages(pages: FastifyInstance, { captured, hints }: InboxDeps, pageDeps: PageDeps): void {
  const find = ({ params }: Visit): CapturedEmail => {
    const email = captured.find(params.id ?? '')
    if (email === undefined) throw new PageFailed({ code: 'not_found', message })
    return email
  }
  addPage(pages, pageDeps, 'GET /inbox', (visit) =>
    mailboxPage(visit, { emails: captured.list(), email: null, curl: hints.curl }),
  )
  addPage(pages, pageDeps, 'GET /inbox/:id', (visit) => {
    const email = find(visit)
    captured.markSeen(email.id)
    return mailboxPage(visit, { emails: captured.list(), email, curl: hints.curl })
  })
  addPage(pages, pageDeps, 'POST /inbox/:id/delete', (visit) => {
    captured.delete(find(visit).id)
    return { redirect: '/inbox' }
  })
  addPage(pages, pageDeps, 'POST /inbox/delete-all', () => {
    captured.deleteAll()
    return { redirect: '/inbox' }
  })
  addPage(pages, pageDeps, 'POST /inbox/examples', sendExamples)
  pages.get<{ Params: { id: string } }>('/inbox/:id/html', (request, reply) => {
    const email = captured.find(request.params.id)
    return email === undefined ? answerNotFound(reply) : sendFrame(reply, email.html)
  })
  pages.get<{ Params: { id: string } }>('/inbox/:id/raw', (request, reply) => {
    const email = captured.find(request.params.id)
    return email === undefined ? answerNotFound(reply) : sendRaw(reply, `${email.id}.eml`, email.raw)
  })
}

/** One email of each type, from the first app. */
async function sendExamples({ get }: Visit): Promise<PageAnswer> {
  const { slugs } = await get('app.names', {})
  const params = { app: Object.values(slugs)[0] ?? '' }
  for (const [type] of emailTypeNames)
    await get('app.test_email', { params, body: { to: 'you@example.com', type } })
  return { redirect: '/inbox' }
}

function addApi(pages: FastifyInstance, { captured }: InboxDeps): void {
  const answer = (reply: FastifyReply, email: CapturedEmail | undefined) =>
    email === undefined ? answerNotFound(reply) : sendJson(reply, 200, JSON.stringify(presentEmail(email)))
  pages.get('/api/inbox', (_request, reply) =>
    sendJson(reply, 200, JSON.stringify(captured.list().map(presentSummary))),
  )
  pages.delete('/api/inbox', (_request, reply) => {
    captured.deleteAll()
    return reply.code(204).send()
  })
  pages.get<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) =>
    answer(reply, captured.find(request.params.id)),
  )
  pages.delete<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) => {
    captured.delete(request.params.id)
    return reply.code(204).send()
  })
  pages.get<{ Querystring: { to?: string } }>('/api/inbox/latest', (request, reply) => {
    const { to } = request.query
    const isWanted = (email: CapturedEmail) =>
      to === undefined || email.to.toLowerCase() === String(to).toLowerCase()
    return answer(reply, captured.list().find(isWanted))
  })
}
