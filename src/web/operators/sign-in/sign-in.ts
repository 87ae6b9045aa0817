/**
 * Signing in: by a code of the command line or an invitation, by a passkey, or by an OpenID provider; and
 * signing out. A code stands in the fragment of its link, which browsers send to nobody: the page's script
 * fills it in, and only the press of the button uses it, so that a link preview uses up none.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseSignInCode } from '../../../domain/operator/sign-in.ts'
import type { SharedRead } from '../../../domain/remembered.ts'
import type { SessionRecord } from '../../../store/people-store.ts'
import { type Html, html, none } from '../../../templates/html.ts'
import { type ListenerDeps, sendError } from '../../http/listener.ts'
import { newCard } from '../console/layout.ts'
import { sendPage } from '../console/respond.ts'
import { readForm } from '../console/visit.ts'
import { newClientRates } from '../rates.ts'
import { clearSessionCookie } from '../session.ts'
import { beginSession, newSessionFor, type OnRequest, ownOrigin, type SessionDeps, safePath } from './begin-session.ts'
import type { OidcSignIn } from './oidc.ts'
import { addPasskeySignIn } from './passkey.ts'

type SignInDeps = SessionDeps & {
  /** Whether anybody has a passkey: shared by strangers who look at the sign-in. */
  readonly hasPasskeys: SharedRead<boolean>
  readonly isProxy: ListenerDeps['isProxy']
  /** Null unless an OpenID provider is configured. */
  readonly oidc: OidcSignIn | null
}

/**
 * Nobody can guess a code; this keeps those who try from using up the processor and the log. Codes that are
 * known are not charged, so that strangers keep nobody out.
 */
const unknownCodes = {
  ofClient: { quota: 20, windowUs: 60e6 },
  ofAll: { quota: 300, windowUs: 60e6 },
}
/**
 * Ceremonies of passkeys and providers that anybody can begin: each writes a row, or asks the provider. Each
 * client and each network has a rate of its own, so that one stranger keeps nobody out; the rate of all
 * protects the processor.
 */
const ceremonies = {
  ofClient: { quota: 30, windowUs: 10e6 },
  ofAll: { quota: 1000, windowUs: 10e6 },
}

/** A hook that refuses requests beyond the rates of ceremonies. */
function newLimiter({ isProxy }: SignInDeps): OnRequest {
  const mayBegin = newClientRates({ ...ceremonies, isProxy })
  return async (request, reply) => (mayBegin(request) ? undefined : sendTooMany(reply))
}

/** Answering a program that asks again at once would use up the processor. */
const refusedAfterMs = 100

async function sendTooMany(reply: FastifyReply): Promise<FastifyReply> {
  await sleep(refusedAfterMs)
  return sendError(reply, 429, {
    code: 'too_many_requests',
    message: 'Too many attempts to sign in. Try again in a minute.',
  })
}

export function addSignIn(pages: FastifyInstance, deps: SignInDeps): void {
  const mayTryUnknown = newClientRates({ ...unknownCodes, isProxy: deps.isProxy })
  pages.get('/sign-in', async (request, reply) => {
    if ((await deps.readSession(request)) !== null) return reply.redirect('/', 303)
    return sendPage(reply, 200, await signInPage(deps, request, none))
  })
  pages.post('/sign-in', async (request, reply) => {
    const form = readForm(request)
    const session = await signInByCode(deps, request, form.get('code') ?? '')
    if (session === null) {
      if (!mayTryUnknown(request)) return sendTooMany(reply)
      deps.emit({ kind: 'console_sign_in', method: 'code', result: 'refused', requestId: request.id })
      const problem = html`<p class="problem" role="alert" id="code-fault">This code is unknown, used or expired. Get a new one.</p>`
      return sendPage(reply, 403, await signInPage(deps, request, problem))
    }
    beginSession(deps, { request, reply }, { secret: session.secret, method: 'code' })
    return reply.redirect(safePath(form.get('to')), 303)
  })
  pages.post('/sign-out', async (request, reply) => {
    const signedIn = await deps.readSession(request)
    if (signedIn?.session != null) await deps.store.endSession(signedIn.session.id, signedIn.access.actor)
    clearSessionCookie(reply, ownOrigin(deps, request))
    return reply.redirect('/sign-in', 303)
  })
  addPasskeySignIn(pages, deps, newLimiter(deps))
  deps.oidc?.add(pages, deps, newLimiter(deps))
}

async function signInByCode(
  { store }: SignInDeps,
  request: FastifyRequest,
  code: string,
): Promise<(SessionRecord & { readonly secret: string }) | null> {
  const hash = parseSignInCode(code)
  // A look-up first: a transaction for each guess would be a load.
  if (hash === null || !(await store.isSignInCode(hash))) return null
  const { secret, ...wanted } = newSessionFor(request)
  const session = await store.signInByCode(hash, wanted)
  return session && { ...session, secret }
}

async function signInPage(deps: SignInDeps, request: FastifyRequest, problem: Html): Promise<Html> {
  const { oidc } = deps
  const to = new URL(request.url, 'http://console').searchParams.get('to') ?? ''
  const hasPasskeys = await deps.hasPasskeys.get()
  const passkey = html`<div id="passkey" hidden data-to="${safePath(to)}"><button type="button" class="main wide">Use a passkey</button>
<p class="fault" role="alert"></p>
</div>`
  const provider =
    oidc === null
      ? none
      : html`<p><a class="button main wide" href="/sign-in/oidc?to=${encodeURIComponent(safePath(to))}">Continue with ${oidc.name}</a></p>`
  const others = html`${hasPasskeys ? passkey : none}${provider}`
  return newCard(
    'Sign in',
    html`${problem}${others}
<form method="post" action="/sign-in" class="stack">
<input type="hidden" name="to" value="${to}">
<div class="field"><label for="code">One-time code</label>
<input id="code" name="code" required autocomplete="off" spellcheck="false" autocapitalize="none" maxlength="100" placeholder="psl_…" aria-describedby="code-hint">
<span class="hint" id="code-hint">It is in the link that <code>postern console login</code> prints on the server, or in your invitation.</span></div>
<button class="wide${hasPasskeys || oidc !== null ? '' : ' main'}">Sign in</button>
</form>`,
  )
}
