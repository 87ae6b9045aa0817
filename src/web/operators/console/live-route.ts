/** Opens the stream of a page: the topic is checked against the access of the person who asks. */
import type { FastifyInstance } from 'fastify'
import { sendError } from '../../http/listener.ts'
import { readTopic } from './live.ts'
import type { PageDeps } from './visit.ts'

export function addLive(
  pages: FastifyInstance,
  { live: { streams }, newRunner, readSession, rates, shell }: PageDeps,
): void {
  pages.addHook('preClose', async () => streams.close())
  const options = { exposeHeadRoute: false } // a HEAD would open a stream
  pages.get<{ Querystring: { topic?: unknown } }>('/live', options, async (request, reply) => {
    const signedIn = await readSession(request, { notes: false })
    if (signedIn === null)
      return sendError(reply, 401, { code: 'not_signed_in', message: 'Sign in to the console first.' })
    const { access, session } = signedIn
    const limited = session && (await rates.charge(`${session.person.id} stream`))
    if (limited !== null) return sendError(reply, 429, limited)
    const topic = typeof request.query.topic === 'string' ? request.query.topic : ''
    const isKnown = topic === 'service' || (topic === 'inbox' && shell.hasInbox)
    const { call } = newRunner(access)
    const maySee = async () => {
      const { id = '', kind } = readTopic(topic) ?? {}
      if (kind === 'email') return (await call('email.show', { params: { email: id } })).ok
      return kind === 'webhooks' && (await call('webhook.list', { params: { app: id } })).ok
    }
    if (!isKnown && !(await maySee()))
      return sendError(reply, 404, { code: 'not_found', message: 'There is no such topic.' })
    const person = session?.person.id ?? 'dev'
    if (streams.isFullFor(person))
      return sendError(reply, 503, { code: 'too_many_streams', message: 'Too many pages are open.' })
    reply.hijack()
    if (request.raw.destroyed) return reply // the browser left meanwhile
    const isSignedIn = async () => (await readSession(request, { notes: false })) !== null
    streams.open(reply.raw, { topic, person, isSignedIn })
    return reply
  })
}
