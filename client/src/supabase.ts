/**
 * Supabase's "Send Email" hook, as a handler of Web requests: checks the signature (Standard
 * Webhooks), maps the action to a type, queues the email. Supabase gives a hook 5 s in all and calls
 * it up to three times, each time under a new webhook-id: so the idempotency key is made of the token,
 * and however often it calls, one email is queued.
 */
import type { EmailType, Sender } from './email.ts'
import { linkTo } from './link.ts'
import { PosternError } from './postern-error.ts'
import { verifyWebhook } from './standard-webhook.ts'

/** The actions that carry a link; each is also the `type` that `verifyOtp` asks for. */
export type SupabaseAction = 'signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change'

export type SendEmailHookOptions = {
  readonly postern: Sender
  /** The hook's secret as Supabase shows it: `v1,whsec_…`; several, parted by `|`, while it is changed. */
  readonly secret: string
  /**
   * The app's pages: absolute addresses without a query. Each gets `?token=`, and calls
   * `verifyOtp({ token_hash: token, type })` with the action as type when its button is pressed.
   */
  readonly pages: { readonly [action in SupabaseAction]?: string | undefined }
  /** What invitations are to; without it they are refused. */
  readonly organisationName?: string | undefined
  /** Seconds that a link lives, as the project's settings have it (Email OTP expiration): 3,600 unless given. */
  readonly otpExpiresIn?: number | undefined
}

const typeOf: { readonly [action in SupabaseAction]: EmailType } = {
  signup: 'email_verification',
  email_change: 'email_verification',
  magiclink: 'magic_link',
  recovery: 'password_reset',
  invite: 'organisation_invite',
}

/** The handler: an Edge Function is `Deno.serve(sendEmailHook({ … }))`. */
export function sendEmailHook(options: SendEmailHookOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const body = await request.text()
      if (!(await verifyWebhook(options.secret, request.headers, body, Date.now()))) {
        return refuse(401, 'The signature is not valid, or the request is too old.')
      }
      await Promise.all(readLinks(body).map((link) => queue(options, link)))
      return Response.json({})
    } catch (error) {
      return answerFailure(error)
    }
  }
}

type HookLink = { readonly action: SupabaseAction; readonly to: string; readonly token: string }

/** The links of a call: one, or two where both addresses confirm a change. */
function readLinks(body: string): HookLink[] {
  const { user, email_data: data } = JSON.parse(body) as {
    user: { email: string; new_email?: string; email_new?: string }
    email_data: { email_action_type: string; token_hash: string; token_hash_new?: string }
  }
  const action = data.email_action_type
  if (!isAction(action)) {
    const message = `Postern has no type for the email "${/^\w+$/.test(action) ? action : '?'}": it carries a code or no link. Send it by other means.`
    throw new PosternError('unsupported_email', message)
  }
  if (action !== 'email_change') return [{ action, to: user.email, token: data.token_hash }]
  // The names are crossed over: the hash named new belongs to the current address.
  const newAddress = user.new_email || user.email_new || user.email
  const links = [
    { action, to: newAddress, token: data.token_hash },
    { action, to: user.email, token: data.token_hash_new ?? '' },
  ]
  if (data.token_hash) return links.filter(({ token }) => token !== '')
  return [{ action, to: newAddress, token: data.token_hash_new ?? '' }]
}

const isAction = (action: string): action is SupabaseAction => Object.hasOwn(typeOf, action)

async function queue(options: SendEmailHookOptions, { action, to, token }: HookLink): Promise<void> {
  const { postern, pages, organisationName, otpExpiresIn = 3600 } = options
  const page = pages[action]
  if (page === undefined) throw new PosternError('invalid_config', `Name pages.${action}.`)
  const type = typeOf[action]
  const link = { to, url: linkTo(page, token), expiresAt: new Date(Date.now() + otpExpiresIn * 1000) }
  const idempotencyKey = await digest(`${action} ${to} ${token}`)
  try {
    if (type !== 'organisation_invite') await postern.send({ ...link, type }, { idempotencyKey })
    else if (organisationName) await postern.send({ ...link, type, organisationName }, { idempotencyKey })
    else throw new PosternError('invalid_config', 'Give organisationName: an invitation shows it.')
  } catch (error) {
    if (!isRepeat(error)) throw error
  }
}

/** The same token again, with an expiry some seconds later: its email is queued. */
const isRepeat = (error: unknown): boolean =>
  error instanceof PosternError && error.issues.some(({ code }) => code === 'idempotency_key_reused')

async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Supabase shows the message, and calls again after 429 and 503 that carry Retry-After. */
function answerFailure(error: unknown): Response {
  if (!(error instanceof PosternError)) return refuse(400, 'The body is not a Send Email hook of Supabase.')
  return refuse(statusOf(error), `${error.code}: ${error.message}`, error.retryAfterMs)
}

function statusOf({ code, status = 503 }: PosternError): number {
  if (code === 'unsupported_email') return 422
  // What only the app's own settings can mend is no fault of the caller's.
  if (code === 'invalid_config' || (status < 500 && status !== 429)) return 500
  return status === 429 ? 429 : 503
}

function refuse(status: number, message: string, retryAfterMs?: number): Response {
  const headers = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
  return Response.json({ error: { http_code: status, message } }, { status, headers: new Headers(headers) })
}
