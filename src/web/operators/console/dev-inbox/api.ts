/** The inbox as JSON, for tests of apps that send to it: a list, one email, and a wait for one. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type CapturedEmail, type CaptureRelay, capturedMax } from '../../../../delivery/relay/capture-relay.ts'
import { inboxWaitDefaultS, inboxWaitMaxS } from '../../../../domain/bounds.ts'
import { describeDuration } from '../../../../domain/duration.ts'
import { emailTypes } from '../../../../domain/request/email-kinds.ts'
import { presentInboxEmail, presentSummary, readAfter } from '../../../../management/inbox/inbox-email.ts'
import { sendError, sendJson } from '../../../http/listener.ts'
import { matchesText } from './present.ts'

export const goneMessage = `This email is not in the inbox, which keeps the newest ${capturedMax} until dev mode stops.`
export const answerGone = (reply: FastifyReply): FastifyReply => answerNone(reply, goneMessage)

const answerNone = (reply: FastifyReply, message: string): FastifyReply =>
  sendError(reply, 404, { code: 'no_such_email', message })

const waitingMax = 100

type Query = Readonly<Record<string, unknown>>
type InboxRequest = FastifyRequest<{ Querystring: Query }>
type Filter = (email: CapturedEmail) => boolean

export function addInboxApi(pages: FastifyInstance, captured: CaptureRelay): void {
  const answer = (reply: FastifyReply, email: CapturedEmail | undefined) =>
    email === undefined ? answerGone(reply) : sendJson(reply, 200, JSON.stringify(presentInboxEmail(email)))
  pages.get('/api/inbox', (request: InboxRequest, reply) => {
    const filter = readFilter(request.query)
    const limit = readNumber(request.query.limit, capturedMax)
    if (typeof filter === 'string') return answerFault(reply, filter)
    if (limit === null || !Number.isInteger(limit) || limit < 1)
      return answerFault(reply, `limit is a whole number from 1 to ${capturedMax}.`)
    reply.header('inbox-cursor', String(captured.seq))
    return sendJson(reply, 200, JSON.stringify(captured.list().filter(filter).slice(0, limit).map(presentSummary)))
  })
  pages.get('/api/inbox/latest', (request: InboxRequest, reply) => {
    const filter = readFilter(request.query)
    if (typeof filter === 'string') return answerFault(reply, filter)
    return answer(reply, captured.list().find(filter))
  })
  addWait(pages, captured, answer)
  pages.get<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) =>
    answer(reply, captured.find(request.params.id)),
  )
  pages.delete('/api/inbox', (_request, reply) => {
    captured.deleteAll()
    return reply.code(204).send()
  })
  pages.delete<{ Params: { id: string } }>('/api/inbox/:id', (request, reply) => {
    captured.delete(request.params.id)
    return reply.code(204).send()
  })
}

/** Answers when the email comes, the time is over or the service stops; a client may leave before. */
function addWait(
  pages: FastifyInstance,
  captured: CaptureRelay,
  answer: (reply: FastifyReply, email: CapturedEmail) => FastifyReply,
): void {
  const stopping = new AbortController()
  pages.addHook('preClose', async () => stopping.abort())
  let waiting = 0
  pages.get('/api/inbox/wait', async (request: InboxRequest, reply) => {
    const filter = readFilter(request.query)
    const timeoutS = readNumber(request.query.timeout, inboxWaitMaxS, inboxWaitDefaultS)
    if (typeof filter === 'string') return answerFault(reply, filter)
    if (timeoutS === null) return answerFault(reply, `timeout is a number of seconds, at most ${inboxWaitMaxS}.`)
    if (waiting >= waitingMax) {
      const message = `${waitingMax} requests are waiting already: end some first.`
      return sendError(reply, 429, { code: 'too_many_requests', message })
    }
    const left = new AbortController()
    request.raw.once('close', () => left.abort())
    const signal = AbortSignal.any([stopping.signal, left.signal, AbortSignal.timeout(timeoutS * 1000)])
    waiting++
    const email = await captured.wait(filter, signal).finally(() => waiting--)
    return email === null ? answerNone(reply, describeWait(captured, request.query)) : answer(reply, email)
  })
}

const answerFault = (reply: FastifyReply, message: string): FastifyReply =>
  sendError(reply, 400, { code: 'invalid_request', message })

/** By `to`, `type`, `app` (name or slug), `q` and `after`. A text says what is wrong with one of them. */
function readFilter(query: Query): Filter | string {
  const text = (name: string) => (query[name] === undefined ? undefined : String(query[name]))
  const [to, type, app, q, after] = ['to', 'type', 'app', 'q', 'after'].map(text)
  if (type !== undefined && !emailTypes.some((known) => known === type))
    return `type is one of ${emailTypes.join(', ')}.`
  const isLater = after === undefined ? () => true : newLaterFilter(after)
  if (isLater === null)
    return 'after is the header Inbox-Cursor of an answer, the seq of an email, or a time with its zone, as in 2026-01-01T00:00:00Z.'
  const same = (one: string, other: string | undefined) =>
    other === undefined || one.toLowerCase() === other.toLowerCase()
  return (email) =>
    same(email.to, to) &&
    same(email.type, type) &&
    (same(email.app, app) || same(email.slug, app)) &&
    (q === undefined || matchesText(email, q)) &&
    isLater(email)
}

/** After a number of captures, or from a time on. */
function newLaterFilter(text: string): Filter | null {
  const place = readAfter(text)
  if (!place.ok) return null
  const { after = 0, since = 0 } = place.value
  return ({ receivedAt, seq }) => seq > after && receivedAt >= since
}

/** @returns null for what is no number from 0 to `max` */
function readNumber(value: unknown, max: number, fallback = max): number | null {
  if (value === undefined) return fallback
  const number = /^\d{1,5}(?:\.\d{1,3})?$/.test(String(value)) ? Number(value) : Number.NaN
  return number <= max ? number : null
}

const listedMax = 3

/** Names the emails that did come to the address. */
function describeWait(captured: CaptureRelay, { to }: Query): string {
  const others = captured.list().filter((email) => email.to.toLowerCase() === String(to).toLowerCase())
  const listed = others
    .slice(0, listedMax)
    .map(({ type, receivedAt }) => `${type}, ${describeDuration(Date.now() - receivedAt)} ago`)
  if (to === undefined) return 'No such email came in time.'
  if (listed.length === 0) return 'No such email came in time, and none to this address is in the inbox.'
  return `No such email came in time. The newest to this address: ${listed.join('; ')}.`
}
