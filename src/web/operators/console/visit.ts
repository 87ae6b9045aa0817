/**
 * One request for a page: who asks, with which form, and the operations that the page calls on their behalf.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { operatorBodyBytesMax } from '../../../domain/bounds.ts'
import { isAtLeast, type Role } from '../../../domain/operator/management-token.ts'
import type { Access } from '../../../management/operation/access.ts'
import { errorStatus, type OperationError } from '../../../management/operation/result.ts'
import type { Answer, CallInput, OperationName, OperationRunner } from '../../../management/operations.ts'
import { type Html, html } from '../../../templates/html.ts'
import type { FormNonces } from '../form-nonces.ts'
import { isFromOwnPage } from '../guard.ts'
import type { OperatorRates } from '../rates.ts'
import type { ReadSession, SignedIn } from '../session.ts'
import { type NavName, newCard, newPage, type Shell } from './layout.ts'
import type { Live } from './live.ts'
import { findNotice, type Notice } from './notices.ts'
import { hiddenFields } from './parts.ts'
import { sendFile, sendFrame, sendPage } from './respond.ts'
import type { TakeTurn } from './turns.ts'

/** An error for which a page has no place: it is answered with a page of its own. */
export class PageFailed extends Error {
  override name = 'PageFailed'
  readonly error: OperationError
  constructor(error: OperationError) {
    super(error.code)
    this.error = error
  }
}

export type Visit = SignedIn & {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a form; empty for a GET. */
  readonly form: URLSearchParams
  /** Milliseconds since 1970. */
  readonly now: number
  readonly isDev: boolean
  readonly shell: Shell
  readonly live: Live
  readonly forms: FormNonces
  readonly call: OperationRunner['call']
  /** The answer of an operation; an error ends the page. */
  readonly get: <Name extends OperationName>(name: Name, input: CallInput<Name>) => Promise<Answer<Name>>
  readonly may: (role: Role) => boolean
  /** Whether the access is for the whole service. */
  readonly seesAll: boolean
}

/** The answer of a page. */
export type PageAnswer =
  | {
      readonly title: string
      readonly body: Html
      /** The part of the navigation that it belongs to. */
      readonly nav?: NavName
      /** The topic of which the page wants to hear (`live.ts`). */
      readonly live?: string
      readonly status?: number
    }
  | { readonly redirect: string; readonly notice?: Notice }
  /** A file to save. */
  | { readonly file: string; readonly type: string; readonly text: string }
  /** The HTML of an email, for a frame. */
  | { readonly frame: string }

export type Handler = (visit: Visit) => Promise<PageAnswer> | PageAnswer

export type PageDeps = {
  /** Operations with the role and the scope of an access. */
  readonly newRunner: (access: Access) => OperationRunner
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly forms: FormNonces
  readonly readSession: ReadSession
  readonly isDev: boolean
  readonly shell: Shell
  readonly live: Live
  readonly rates: OperatorRates
  readonly takeTurn: TakeTurn
}

/** Reads a form that a browser sent; fields of files and other types are no form of the console. */
export function readForm({ body, headers }: FastifyRequest): URLSearchParams {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')
  if (body === undefined || !isForm) return new URLSearchParams()
  if (body === null)
    throw new PageFailed({
      code: 'invalid_request',
      message: `A form may have at most ${operatorBodyBytesMax} bytes.`,
    })
  return new URLSearchParams(Buffer.from(body as Uint8Array).toString('utf8'))
}

/**
 * Parameters that only choose what a page shows. All others prepare a change, as the values of a form or a
 * question whose answer is one press, so they count only in links and forms of the console itself.
 */
const shownBy = new Set(
  'app actor from to group key type state recipient reply within reason destination since cursor range view in code q'.split(
    ' ',
  ),
)

function readQuery(request: FastifyRequest): URLSearchParams {
  const { searchParams } = new URL(request.url, 'http://console')
  return isFromOwnPage(request)
    ? searchParams
    : new URLSearchParams([...searchParams].filter(([name]) => shownBy.has(name)))
}

function newVisit(
  { forms, isDev, live, newRunner, now, shell }: PageDeps,
  signedIn: SignedIn,
  request: FastifyRequest,
): Visit {
  const { access } = signedIn
  const { call } = newRunner(access)
  return {
    ...signedIn,
    isDev,
    shell,
    live,
    forms,
    call,
    params: request.params as Record<string, string>,
    query: readQuery(request),
    form: readForm(request),
    now: now(),
    get: async (name, input) => {
      const result = await call(name, input)
      if (result.ok) return result.value
      throw new PageFailed(result.error)
    },
    may: (role) => isAtLeast(access.role, role),
    seesAll: access.apps === null,
  }
}

/** Adds a page, for people who are signed in; others are led to the sign-in. */
export function addPage(
  pages: FastifyInstance,
  deps: PageDeps,
  line: `${'GET' | 'POST'} /${string}`,
  handler: Handler,
): void {
  const [method = 'GET', url = '/'] = line.split(' ')
  pages.route({
    method: method as 'GET' | 'POST',
    url,
    handler: async (request, reply) => {
      const signedIn = await deps.readSession(request)
      if (signedIn === null && request.method === 'POST') return sendSignedOut(request, reply)
      if (signedIn === null) return reply.redirect(signInAddress(request), 303)
      const { session } = signedIn
      const isSearch = line === 'POST /find'
      const error = session && (await deps.rates.charge(session.person.id, { isSearch }))
      if (error !== null) throw new PageFailed(error)
      const visit = newVisit(deps, signedIn, request)
      // A change may take its time, and is seldom.
      const answer = await (method === 'GET' ? deps.takeTurn(() => handler(visit)) : handler(visit))
      if ('file' in answer) return sendFile(reply, answer)
      if ('frame' in answer) return sendFrame(reply, answer.frame)
      if ('redirect' in answer) return reply.redirect(withNotice(answer.redirect, answer.notice), 303)
      const notice = findNotice(visit.query.get('done'))
      const frame = describeFrame(deps, signedIn)
      const { live, ...still } = answer
      // A page fetches its own address to stay up to date; that of a form has no page.
      const parts = method === 'GET' && live !== undefined ? { ...still, live } : still
      return sendPage(reply, answer.status ?? 200, newPage(deps.shell, { ...parts, ...frame, notice }))
    },
  })
}

/** The frame of a page names the person who looks at it. */
const describeFrame = ({ now }: PageDeps, { access, session }: SignedIn) => ({
  person: session && { name: access.actor.name, role: access.role, localTimes: session.person.localTimes },
  now: now(),
})

type ErrorPage = { readonly status: number; readonly title: string; readonly body: Html }

/** A page that says what is wrong: with the navigation for people who are signed in. */
export async function sendErrorPage(
  deps: PageDeps,
  request: FastifyRequest,
  { reply, page: { status, title, body } }: { readonly reply: FastifyReply; readonly page: ErrorPage },
): Promise<FastifyReply> {
  const signedIn = await deps.readSession(request, { notes: false }).catch(() => null)
  if (signedIn === null) return sendPage(reply, status, newCard(title, body))
  const whole = html`<h1>${title}</h1>${body}`
  return sendPage(
    reply,
    status,
    newPage(deps.shell, { title, body: whole, notice: null, ...describeFrame(deps, signedIn) }),
  )
}

/** The page that was asked for comes after the sign-in. */
const signInAddress = ({ url }: FastifyRequest): string =>
  url === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(url)}`

/** A form that comes after its session has ended is kept on the page that says so, and can be sent again. */
function sendSignedOut(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const body = html`<p class="lead">Your session has ended, so nothing was saved. Your entries are still here.</p>
<ol><li><a href="/sign-in" target="_blank">Sign in</a> in a new tab.</li><li>Come back to this page and send it again.</li></ol>
${renderAgain(request)}`
  return sendPage(reply, 401, newCard('You are signed out', body))
}

/** A button that sends a form again as it came. Something new is made once. */
export function renderAgain(request: FastifyRequest): Html {
  const fields = [...readForm(request)].flatMap(([name, value]) => hiddenFields({ [name]: value }))
  return html`<form method="post" action="${request.url}">${fields}<button class="main">Send again</button></form>`
}

const withNotice = (address: string, notice: Notice | undefined): string =>
  notice === undefined ? address : `${address}${address.includes('?') ? '&' : '?'}done=${notice}`

export const toHttpStatus = ({ code }: OperationError): number => errorStatus[code]
