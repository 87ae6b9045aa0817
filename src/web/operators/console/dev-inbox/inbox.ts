/**
 * The dev inbox: captured emails as pages of the console, and as JSON for tests. It shows live links,
 * so it listens on loopback unless `POSTERN_CONSOLE_PUBLIC` is `yes`, and answers loopback Hosts only. An
 * email's HTML is shown in a sandboxed frame whose policy runs nothing.
 */
import type { FastifyInstance } from 'fastify'
import type { CapturedEmail, CaptureRelay } from '../../../../delivery/relay/capture-relay.ts'
import { emailTypeNames } from '../../email-types.ts'
import { sendFile, sendFrame } from '../respond.ts'
import { addPage, type PageAnswer, type PageDeps, PageFailed, type Visit } from '../visit.ts'
import { addInboxApi, answerGone, goneMessage } from './api.ts'
import { mailboxPage } from './pages.ts'

/** `hints.curl`: a line that sends an email. */
export type InboxDeps = { readonly captured: CaptureRelay; readonly hints: { readonly curl: string | null } }

/** Adds the inbox to the pages of the console, which guard it. */
export function addInbox(pages: FastifyInstance, deps: InboxDeps, pageDeps: PageDeps): void {
  addPages(pages, deps, pageDeps)
  addInboxApi(pages, deps.captured)
}

function addPages(pages: FastifyInstance, { captured, hints }: InboxDeps, pageDeps: PageDeps): void {
  const find = ({ params }: Visit): CapturedEmail => {
    const email = captured.find(params.id ?? '')
    if (email === undefined) throw new PageFailed({ code: 'not_found', message: goneMessage })
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
    return email === undefined ? answerGone(reply) : sendFrame(reply, email.html)
  })
  pages.get<{ Params: { id: string } }>('/inbox/:id/raw', (request, reply) => {
    const email = captured.find(request.params.id)
    return email === undefined
      ? answerGone(reply)
      : sendFile(reply, { file: `${email.id}.eml`, type: 'message/rfc822', text: email.raw })
  })
}

/** One email of each type, from the first app. */
async function sendExamples({ get }: Visit): Promise<PageAnswer> {
  const { slugs } = await get('app.names', {})
  const params = { app: Object.values(slugs)[0] ?? '' }
  for (const [type] of emailTypeNames) await get('app.test_email', { params, body: { to: 'you@example.com', type } })
  return { redirect: '/inbox' }
}
