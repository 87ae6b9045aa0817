/**
 * Supabase's "Send Email" hook, as a handler of Web requests: checks the signature (Standard
 * Webhooks), maps the action to a type, queues the email. Supabase gives a hook 5 s in all and may call
 * it again, under a new webhook-id: so the idempotency key is made of the token, and however often it
 * calls, one email is queued. What fails is answered with status 200 and an `error`, since Supabase
 * reads no other answer's body; its own retry is immediate and would find the same.
 */
import { report, tell } from './background.ts'
import type { EmailType, Sender } from './email.ts'
import { checkPages, joinToken, linkTo } from './link.ts'
import { PosternError } from './postern-error.ts'
import { verifyWebhook } from './standard-webhook.ts'

export { splitToken } from './link.ts'

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
  /**
   * What becomes of `redirect_to`: left out unless `in-token`; then the page reads it with
   * `splitToken`, as the query `redirect_to=…`.
   */
  readonly redirectTo?: 'drop' | 'in-token' | undefined
  /** Told of every failure; unless given, they go to `console.error`. */
  readonly onError?: ((error: unknown) => unknown) | undefined
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
  const { secret, pages, onError = report } = options
  checkPages('pages', pages)
  return async (request) => {
    try {
      const body = await request.text()
      if (!(await verifyWebhook(secret, request.headers, body, Date.now()))) {
        return Response.json(
          { error: 'The signature is not valid, or the request too old.' },
          { status: 401 },
        )
      }
      await Promise.all(readLinks(body).map((link) => queue(options, link)))
      return Response.json({})
    } catch (error) {
      await tell(onError, error)
      return answerFailure(error)
    }
  }
}

type HookLink = {
  readonly action: SupabaseAction
  readonly to: string
  readonly token: string
  readonly redirectTo: string
}

/** The links of a call: one, or two where both addresses confirm a change. */
function readLinks(body: string): HookLink[] {
  const { user, data } = readHook(body)
  const action = data('email_action_type')
  if (!isAction(action)) {
    const message = `Postern has no type for the email "${/^\w+$/.test(action) ? action : '?'}": it carries a code or no link. Send it by other means.`
    throw new PosternError('unsupported_email', message)
  }
  const link = (to: string, token: string): HookLink => ({
    action,
    to,
    token,
    redirectTo: data('redirect_to'),
  })
  const [hash, hashNew] = [data('token_hash'), data('token_hash_new')]
  const current = user('email')
  // The names are crossed over: the hash named new belongs to the current address.
  const links =
    action === 'email_change'
      ? [
          link(user('new_email') || user('email_new') || current, hash || hashNew),
          link(current, hash && hashNew),
        ]
      : [link(current, hash)]
  const [first, ...more] = links
  if (!first?.to || !first.token) throw malformed('it lacks the address or token_hash')
  return [first, ...more.filter(({ to, token }) => to !== '' && token !== '')]
}

const malformed = (why: string) =>
  new PosternError('invalid_body', `The body is not a Send Email hook of Supabase: ${why}.`)

type TextField = (name: string) => string

/** The two objects of a hook's body, as readers of their text fields; '' where there is none. */
function readHook(body: string): { user: TextField; data: TextField } {
  let hook: unknown
  try {
    hook = JSON.parse(body)
  } catch {
    throw malformed('it is no JSON')
  }
  const fieldOf = (value: unknown, name: string): unknown =>
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  const textIn =
    (part: string): TextField =>
    (name) => {
      const text = fieldOf(fieldOf(hook, part), name)
      return typeof text === 'string' ? text : ''
    }
  return { user: textIn('user'), data: textIn('email_data') }
}

const isAction = (action: string): action is SupabaseAction => Object.hasOwn(typeOf, action)

async function queue(options: SendEmailHookOptions, hook: HookLink): Promise<void> {
  const { postern, pages, organisationName, otpExpiresIn = 3600, redirectTo = 'drop' } = options
  const { action, to, token } = hook
  const page = pages[action]
  if (page === undefined) throw new PosternError('invalid_config', `Name pages.${action}.`)
  const rest = redirectTo === 'drop' ? '' : `redirect_to=${encodeURIComponent(hook.redirectTo)}`
  const expiresAt = new Date(Date.now() + otpExpiresIn * 1000)
  const link = { to, url: linkTo(page, joinToken(token, rest)), expiresAt }
  const type = typeOf[action]
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

/** What Supabase hands on to the app: `http_code` and `message`. */
function answerFailure(error: unknown): Response {
  const { code, message, status } =
    error instanceof PosternError ? error : new PosternError('unexpected_response', 'The email was not sent.')
  const limited = status === 429
  const away = code === 'timeout' || code === 'network_error' || (status ?? 0) >= 500
  const http_code = code === 'unsupported_email' ? 422 : limited ? 429 : away ? 503 : 500
  return Response.json({ error: { http_code, message: `${code}: ${message}` } })
}
