/**
 * Tells open pages that something changed, by server-sent events: a page then fetches itself, so there is one
 * renderer and no data in the stream. It also fetches itself once when the stream opens, to catch changes
 * made since it was rendered. The topic `service` is everything that the overview shows: while somebody
 * watches, it is read once for all. An email is read as well, and signalled at once if this process itself
 * changes it, like the dev inbox.
 */

import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { minuteMs } from '../../../domain/duration.ts'
import type { EmailId } from '../../../domain/id.ts'
import { LruMap } from '../../../domain/lru-map.ts'
import type { Access } from '../../../management/operation/access.ts'
import type { Management } from '../../../management/operation/operation.ts'
import { newLocalRunner } from '../../../management/operation/perform.ts'
import type { EventStream, PosternEvent } from '../../../observe/events.ts'
import type { Html } from '../../../templates/html.ts'
import { sendError } from '../../http/listener.ts'
import type { OperatorRates } from '../rates.ts'
import type { ReadSession } from '../sign-in/session.ts'

/** Each change has all overviews drawn again, which takes time from requests for emails. */
const lookAtServiceEveryMs = 5000
const lookAtEmailsEveryMs = 2000
/** Shorter than proxies wait; a session that ended ends its streams then. */
const pingEveryMs = 20_000
/** Several changes at once are one signal, and not all pages fetch themselves at the same moment. */
const signalAfterMs = 150
const signalSpreadMs = 800
/**
 * A shared part of a page is drawn anew after this long, whatever the looks say: they do not see every
 * change.
 */
const shareMs = 5000
const streamsMax = 200
const streamsPerPersonMax = 32
const hourMinutes = 60
/** Followed by the id. */
const emailTopic = 'email:'

type Watched = Pick<Management, 'store' | 'queue'>
type Shared = { readonly drawn: Promise<Html | null>; readonly untilMs: number }

type Stream = {
  readonly topic: string
  readonly response: ServerResponse
  /** The person who watches. */
  readonly person: string
  readonly isSignedIn: () => Promise<boolean>
  timer: NodeJS.Timeout | undefined
}

export class Live {
  readonly #management: Watched
  readonly #streams = new Set<Stream>()
  /** End what is done again and again while there is a stream. */
  #stops: readonly (() => void)[] = []
  #seen = ''
  #isClosed = false
  #shared = new Map<string, Shared>()
  readonly #seenEmails = new LruMap<string, string>(streamsMax)

  constructor(management: Watched, events: EventStream) {
    this.#management = management
    events.subscribe((event) => {
      if (this.#streams.size > 0) for (const topic of topicsOf(event)) this.#signal(topic)
    })
  }

  isFullFor(person: string): boolean {
    const own = [...this.#streams].filter((stream) => stream.person === person)
    return this.#streams.size >= streamsMax || own.length >= streamsPerPersonMax
  }

  open(response: ServerResponse, watch: Pick<Stream, 'topic' | 'person' | 'isSignedIn'>): void {
    const stream: Stream = { ...watch, response, timer: undefined }
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    response.write('retry: 3000\n\n')
    if (this.#isClosed) return void response.end() // it came while the listener was closing
    this.#streams.add(stream)
    response.once('close', () => this.#remove(stream))
    if (this.#stops.length > 0) return
    this.#stops = [
      repeat(lookAtServiceEveryMs, () => this.#lookAtService()),
      repeat(lookAtEmailsEveryMs, () => this.#lookAtEmails()),
      repeat(pingEveryMs, () => this.#ping()),
    ]
  }

  /**
   * A part of a page that is the same for all who watch: it is drawn once for them, until the next look finds
   * a change. While nobody watches, it is drawn for each.
   */
  share(name: string, draw: () => Promise<Html | null>): Promise<Html | null> {
    if (this.#streams.size === 0) return draw()
    const known = this.#shared.get(name)
    if (known !== undefined && performance.now() < known.untilMs) return known.drawn
    const drawn = draw()
    this.#shared.set(name, { drawn, untilMs: performance.now() + shareMs })
    drawn.catch(() => this.#shared.delete(name))
    return drawn
  }

  /** Ends all streams, so that the listener can close. */
  close(): void {
    this.#isClosed = true
    for (const stream of this.#streams) this.#end(stream)
  }

  /** Nothing is written to it from now on: a response that has ended answers a write with an error. */
  #end(stream: Stream): void {
    this.#remove(stream)
    stream.response.end()
  }

  #remove(stream: Stream): void {
    clearTimeout(stream.timer)
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    for (const stop of this.#stops) stop()
    this.#stops = []
    this.#shared = new Map()
  }

  #signal(topic: string): void {
    for (const stream of this.#streams) {
      if (stream.topic !== topic) continue
      const spreadMs = topic === 'service' ? Math.random() * signalSpreadMs : 0
      stream.timer ??= setTimeout(() => {
        stream.timer = undefined
        stream.response.write('event: changed\ndata:\n\n')
      }, signalAfterMs + spreadMs)
    }
  }

  /** One after another, so that many streams are no load at once. */
  async #ping(): Promise<void> {
    for (const stream of [...this.#streams]) {
      const isSignedIn = await stream.isSignedIn().catch(() => true)
      if (!this.#streams.has(stream)) continue // it ended meanwhile
      if (isSignedIn) stream.response.write(': ping\n\n')
      else this.#end(stream)
    }
  }

  get #topics(): ReadonlySet<string> {
    return new Set([...this.#streams].map(({ topic }) => topic))
  }

  async #lookAtEmails(): Promise<void> {
    for (const topic of this.#topics) if (topic.startsWith(emailTopic)) await this.#lookAtEmail(topic)
  }

  /** Another process may have changed it. The first look counts as a change. */
  async #lookAtEmail(topic: string): Promise<void> {
    const id = topic.slice(emailTopic.length) as EmailId
    const email = await this.#management.store.findEmail(id).catch(() => null)
    const seen = email === null ? '' : `${email.state} ${email.trail.length} ${email.nextAttemptAt}`
    if (this.#seenEmails.get(topic) === seen) return
    this.#seenEmails.set(topic, seen)
    this.#signal(topic)
  }

  async #lookAtService(): Promise<void> {
    if (!this.#topics.has('service')) return
    const seen = await this.#describe().catch(() => 'the store does not answer')
    if (this.#seen === seen) return
    this.#seen = seen
    this.#shared = new Map()
    this.#signal('service')
  }

  /** A text that changes when an overview does, and each minute, for its charts and ages. */
  async #describe(): Promise<string> {
    const { queue, store } = this.#management
    const to = Math.floor(store.now() / minuteMs) + 1
    const range = { apps: null, from: to - hourMinutes, to, step: hourMinutes }
    const { countedAt: _, ...counts } = await queue.get() // what the pages show, and mostly the same count
    const nodes = (await store.listNodes()).map(({ id, relays }) => ({ id, relays }))
    return JSON.stringify([to, counts, nodes, await store.readActivity(range)])
  }
}

/** Works again and again, each time after a pause, until the returned function is called. */
function repeat(pauseMs: number, work: () => Promise<void>): () => void {
  let isStopped = false
  let timer = setTimeout(run, pauseMs)
  async function run(): Promise<void> {
    await work()
    if (!isStopped) timer = setTimeout(run, pauseMs)
  }
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}

function topicsOf(event: PosternEvent): readonly string[] {
  switch (event.kind) {
    case 'attempt_recorded':
      return [`${emailTopic}${event.emailId}`, 'inbox']
    case 'emails_ended':
      return event.ended.map(({ emailId }) => `${emailTopic}${emailId}`)
    default:
      return []
  }
}

type LiveDeps = {
  readonly live: Live
  readonly management: Management
  readonly readSession: ReadSession
  readonly rates: OperatorRates
  readonly hasInbox: boolean
}

export function addLive(
  pages: FastifyInstance,
  { live, management, readSession, rates, hasInbox }: LiveDeps,
): void {
  pages.addHook('preClose', async () => live.close())
  pages.get<{ Querystring: { topic?: unknown } }>('/live', async (request, reply) => {
    const signedIn = await readSession(request)
    if (signedIn === null)
      return sendError(reply, 401, { code: 'not_signed_in', message: 'Sign in to the console first.' })
    const { access, session } = signedIn
    const limited = session && (await rates.charge(`${session.person.id} stream`))
    if (limited !== null) return sendError(reply, 429, limited)
    const topic = typeof request.query.topic === 'string' ? request.query.topic : ''
    const isKnown = topic === 'service' || (topic === 'inbox' && hasInbox)
    const isEmail = topic.startsWith(emailTopic) && (await maySee(management, access, topic))
    if (!isKnown && !isEmail)
      return sendError(reply, 404, { code: 'not_found', message: 'There is no such topic.' })
    const person = session?.person.id ?? 'dev'
    if (live.isFullFor(person))
      return sendError(reply, 503, { code: 'too_many_streams', message: 'Too many pages are open.' })
    reply.hijack()
    if (request.raw.destroyed) return reply // the browser left meanwhile
    live.open(reply.raw, {
      topic,
      person,
      isSignedIn: async () => (await readSession(request, { notes: false })) !== null,
    })
    return reply
  })
}

async function maySee(management: Management, access: Access, topic: string): Promise<boolean> {
  const email = topic.slice(emailTopic.length)
  const { call } = newLocalRunner(management, access)
  return (await call('email.show', { params: { email } })).ok
}
