/**
 * Supabase's "Send Email" hook, as a handler of Web requests: checks the signature (Standard
 * Webhooks), maps the action to a type, queues the email. Supabase gives a hook 5 s in all and may call
 * it again under a new `webhook-id`, so the idempotency key is derived from the token: repeated calls
 * queue one email. A failure is answered with status 200 and an `error`, because Supabase reads no
 * other answer's body, and its own immediate retry would fail the same way.
 */
import { report, tell } from './background.ts'
import type { EmailType, Sender } from './email.ts'
import { checkPages, joinToken, linkTo } from './link.ts'
import { type FindLocale, findLocale, type OwnFields } from './locale.ts'
import { PosternError } from './postern-error.ts'
import { verifyWebhook } from './standard-webhook.ts'

export { splitToken } from './link.ts'

/** The actions whose email has a link; also the `type` that `verifyOtp` expects. */
export type SupabaseAction = 'signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change'

/** A user as the hook has it. */
export type SupabaseUser = {
  readonly user_metadata?: OwnFields
} & Readonly<Record<string, unknown>>

export type SendEmailHookOptions = {
  readonly postern: Sender
  /** The hook's secret as Supabase shows it: `v1,whsec_…`; during a change several, separated by `|`. */
  readonly secret: string
  /**
   * The app's pages: absolute addresses without a query; `?token=` is added. Each page's button calls
   * `verifyOtp({ token_hash: token, type })` with the action as `type`.
   */
  readonly pages: { readonly [action in SupabaseAction]?: string | undefined }
  /** Shown in invitations, which are refused without it. */
  readonly organisationName?: string | undefined
  /** Lifetime of a link in seconds, the project's "Email OTP expiration". Default 3,600. */
  readonly otpExpiresIn?: number | undefined
  /** Shows Supabase's code beside the link. Postern's app must allow codes. */
  readonly code?: boolean | undefined
  /**
   * `drop` (default) leaves `redirect_to` out; `in-token` puts it into the token, for `splitToken`, as
   * the query `redirect_to=…`.
   */
  readonly redirectTo?: 'drop' | 'in-token' | undefined
  /**
   * The reader's language, for instance `(user) => user.user_metadata?.locale`. Without it, emails are in
   * the app's own language.
   */
  readonly locale?: FindLocale<[user: SupabaseUser]>
  /** Called with every failure. Default: `console.error`. */
  readonly onError?: ((error: unknown) => unknown) | undefined
}

const typeByAction: { readonly [action in SupabaseAction]: EmailType } = {
  signup: 'email_verification',
  email_change: 'email_verification',
  magiclink: 'magic_link',
  recovery: 'password_reset',
  invite: 'organisation_invite',
}

/** The handler. Edge Function: `Deno.serve(sendEmailHook({ … }))`. */
export function sendEmailHook(options: SendEmailHookOptions): (request: Request) => Promise<Response> {
  const { secret, pages, onError = report } = options
  checkPages('pages', pages)
  return async (request) => {
    try {
      const body = await request.text()
      if (!(await verifyWebhook(secret, request.headers, body, Date.now()))) {
        return Response.json({ error: 'The signature is not valid, or the request is too old.' }, { status: 401 })
      }
      await queue(options, readLink(body))
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
  /** To type; '' if the hook has none. */
  readonly code: string
  readonly redirectTo: string
  readonly user: SupabaseUser
}

/**
 * Apps cannot ask for the words by which a current address agrees to a change; those for a new one would
 * make its owner approve a takeover. Postern's own hook has them.
 */
const secureChange =
  'This adapter cannot send the emails of a change of address that both addresses confirm ("Secure email change"): the one to the current address would ask its owner to confirm the address, and so to approve a change that somebody else may have begun. Nothing was sent. Connect Supabase to Postern itself, which has the right words: postern auth-hook connect APP supabase.'

/** The link of a call. */
function readLink(body: string): HookLink {
  const { user, data, whole } = readHook(body)
  const action = data('email_action_type')
  if (!isAction(action)) {
    const message = `Postern has no type for the email "${/^\w+$/.test(action) ? action : '?'}": it carries a code or no link. Send it by other means.`
    throw new PosternError('unsupported_email', message)
  }
  const [hash, hashNew] = [data('token_hash'), data('token_hash_new')]
  const isChange = action === 'email_change'
  if (isChange && hash && hashNew) throw new PosternError('unsupported_email', secureChange)
  const changed = user('new_email') || user('email_new')
  const to = (isChange && changed) || user('email')
  const token = (isChange && hashNew) || hash
  if (!to || !token) throw malformed('it lacks the address or token_hash')
  const code = (isChange && data('token_new')) || data('token')
  return { action, to, token, code, redirectTo: data('redirect_to'), user: whole }
}

const malformed = (why: string) =>
  new PosternError('invalid_body', `The body is not a Send Email hook of Supabase: ${why}.`)

type TextField = (name: string) => string

/** Readers of the text fields of `user` and `email_data`; '' if a field is missing. */
function readHook(body: string): { user: TextField; data: TextField; whole: SupabaseUser } {
  let hook: unknown
  try {
    hook = JSON.parse(body)
  } catch {
    throw malformed('it is no JSON')
  }
  const readField = (value: unknown, name: string): unknown =>
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  const textIn =
    (part: string): TextField =>
    (name) => {
      const text = readField(readField(hook, part), name)
      return typeof text === 'string' ? text : ''
    }
  const whole = (readField(hook, 'user') ?? {}) as SupabaseUser
  return { user: textIn('user'), data: textIn('email_data'), whole }
}

const isAction = (action: string): action is SupabaseAction => Object.hasOwn(typeByAction, action)

async function queue(options: SendEmailHookOptions, hook: HookLink): Promise<void> {
  const { postern, pages, organisationName, otpExpiresIn = 3600, redirectTo = 'drop' } = options
  const { action, to, token } = hook
  const page = pages[action]
  if (page === undefined) throw new PosternError('invalid_config', `Set pages.${action}.`)
  const rest = redirectTo === 'drop' ? '' : `redirect_to=${encodeURIComponent(hook.redirectTo)}`
  const expiresAt = new Date(Date.now() + otpExpiresIn * 1000)
  const language = await findLocale(options, hook.user)
  const link = { to, url: linkTo(page, joinToken(token, rest)), expiresAt, ...language }
  const type = typeByAction[action]
  const idempotencyKey = await digest(`${action} ${to} ${token}`)
  try {
    const shown = options.code && hook.code !== '' ? { code: hook.code } : {}
    if (type !== 'organisation_invite') await postern.send({ ...link, type, ...shown }, { idempotencyKey })
    else if (organisationName) await postern.send({ ...link, type, organisationName }, { idempotencyKey })
    else throw new PosternError('invalid_config', 'Give organisationName: an invitation shows it.')
  } catch (error) {
    if (!isRepeat(error)) throw error
  }
}

/** A repeated call: only the expiry differs, and the email is queued already. */
const isRepeat = (error: unknown): boolean =>
  error instanceof PosternError && error.issues.some(({ code }) => code === 'idempotency_key_reused')

async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Supabase passes `http_code` and `message` to the app. */
function answerFailure(error: unknown): Response {
  const { code, message, status } =
    error instanceof PosternError ? error : new PosternError('unexpected_response', 'The email was not sent.')
  const limited = status === 429
  const away = code === 'timeout' || code === 'network_error' || (status ?? 0) >= 500
  const http_code = code === 'unsupported_email' ? 422 : limited ? 429 : away ? 503 : 500
  return Response.json({ error: { http_code, message: `${code}: ${message}` } })
}
