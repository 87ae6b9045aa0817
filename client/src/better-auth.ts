/**
 * Better Auth: its four emails through Postern. The callbacks map what they are given to links that
 * keep the service's rules, with the expiry that Better Auth itself will hold the link to:
 *
 *   magic link      from the magic-link plugin's `expiresIn`, counted from now
 *   verification    from the token itself, a JWT
 *   password reset  from `resetPasswordTokenExpiresIn`, counted from now
 *   invitation      from the invitation
 *
 * A link leads to a page of the app's own (`pages`), or to one that the plugin answers below Better
 * Auth's own path: a button that goes on to Better Auth's route, callback URLs included.
 */
import { type Background, dispatch } from './background.ts'
import { answerConfirm } from './confirm-page.ts'
import type { EmailType, Sender } from './email.ts'
import { fromBase64Url, joinToken, linkTo, splitToken } from './link.ts'
import { PosternError } from './postern-error.ts'

export type BetterAuthEmailOptions = Background & {
  readonly postern: Sender
  /**
   * Pages of the app's own, per type, each an absolute address without a query; they get `?token=`.
   * An invitation needs one; the others lead to the plugin's page unless named here.
   */
  readonly pages?: { readonly [type in EmailType]?: string | undefined } | undefined
  /**
   * False where a button is shown already, by Postern's hosted links: the plugin's pages then lead on
   * at once.
   */
  readonly confirm?: boolean | undefined
}

type LinkEmail = { readonly user: { readonly email: string }; readonly url: string; readonly token: string }

type MagicLinkEmail = { readonly email: string; readonly url: string; readonly token: string }

type InvitationEmail = {
  readonly id: string
  readonly email: string
  readonly organization: { readonly name: string }
  readonly invitation: { readonly expiresAt: Date | string }
  readonly inviter: { readonly user: { readonly name: string; readonly email: string } }
}

/** What is read of Better Auth's own options. */
type AuthOptions = {
  readonly appName?: string | undefined
  readonly emailAndPassword?:
    | { readonly enabled: boolean; readonly resetPasswordTokenExpiresIn?: number }
    | undefined
  readonly plugins?: readonly { readonly id: string; readonly options?: unknown }[] | undefined
}

type CallbackContext = { readonly context: { readonly options: AuthOptions } }

// The library's own defaults, in seconds.
const magicLinkExpiresIn = 300
const resetPasswordTokenExpiresIn = 3600

/** Types with a route of the plugin's, the library's route behind it, and what its page says. */
const routes = {
  magic_link: { path: '/magic-link/verify', title: 'Sign in', button: 'Sign in' },
  email_verification: { path: '/verify-email', title: 'Verify your email address', button: 'Verify' },
  password_reset: { path: '/reset-password', title: 'Choose a new password', button: 'Continue' },
} as const

type RoutedType = keyof typeof routes

/**
 * The plugin and the callbacks. The plugin supplies `sendVerificationEmail` and `sendResetPassword`
 * (unless the app has its own) and answers the pages; the other two are options of their plugins:
 * `magicLink({ sendMagicLink })`, `organization({ sendInvitationEmail })`.
 */
export function betterAuthEmail(options: BetterAuthEmailOptions) {
  const { postern, pages = {}, confirm = true } = options
  let auth: AuthOptions | undefined
  /** Better Auth's options, which the plugin is given when Better Auth starts. */
  function authOptions(): AuthOptions {
    if (auth !== undefined) return auth
    throw new PosternError('invalid_config', 'Add the plugin to Better Auth: plugins: [email.plugin].')
  }

  function linkOf(type: RoutedType, { url, token }: { url: string; token: string }): string {
    const { base, rest } = takeApart(type, url, token)
    const page = pages[type]
    if (page !== undefined) return linkTo(page, token)
    authOptions()
    return linkTo(`${base}/postern/${type}`, joinToken(token, rest))
  }

  async function sendMagicLink(email: MagicLinkEmail, context?: CallbackContext): Promise<void> {
    const plugin = (context?.context.options ?? authOptions()).plugins?.find(({ id }) => id === 'magic-link')
    const { expiresIn } = (plugin?.options ?? {}) as { expiresIn?: number }
    const url = linkOf('magic_link', email)
    const expiresAt = inSeconds(expiresIn || magicLinkExpiresIn)
    await dispatch(postern.send({ to: email.email, type: 'magic_link', url, expiresAt }), options)
  }

  async function sendVerificationEmail(email: LinkEmail): Promise<void> {
    const url = linkOf('email_verification', email)
    const expiresAt = readVerificationToken(email.token)
    await dispatch(
      postern.send({ to: email.user.email, type: 'email_verification', url, expiresAt }),
      options,
    )
  }

  async function sendResetPassword(email: LinkEmail): Promise<void> {
    const url = linkOf('password_reset', email)
    const { resetPasswordTokenExpiresIn: expiresIn } = authOptions().emailAndPassword ?? {}
    const expiresAt = inSeconds(expiresIn || resetPasswordTokenExpiresIn)
    await dispatch(postern.send({ to: email.user.email, type: 'password_reset', url, expiresAt }), options)
  }

  async function sendInvitationEmail(email: InvitationEmail): Promise<void> {
    const page = pages.organisation_invite
    if (page === undefined) {
      const message = 'Name pages.organisation_invite: the page where an invitation is accepted.'
      throw new PosternError('invalid_config', message)
    }
    const { user } = email.inviter
    const sending = postern.send({
      to: email.email,
      type: 'organisation_invite',
      url: linkTo(page, email.id),
      expiresAt: email.invitation.expiresAt,
      organisationName: email.organization.name,
      inviterName: user.name || user.email,
    })
    await dispatch(sending, options)
  }

  const plugin = {
    id: 'postern' as const,
    init(context: { options: AuthOptions }) {
      auth = context.options
      const { enabled = false } = auth.emailAndPassword ?? {}
      // What the app has set itself is kept: Better Auth fills in only what is missing.
      return {
        options: {
          emailVerification: { sendVerificationEmail },
          emailAndPassword: { enabled, sendResetPassword },
        },
      }
    },
    async onRequest(request: Request): Promise<{ response: Response } | undefined> {
      const response = answerPage(request, confirm, auth?.appName)
      return response === null ? undefined : { response }
    },
  }

  return { plugin, sendMagicLink, sendVerificationEmail, sendResetPassword, sendInvitationEmail }
}

const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1000)

/** Better Auth's own link: its base, and what it carries besides the token. */
function takeApart(type: RoutedType, url: string, token: string): { base: string; rest: string } {
  const path = type === 'password_reset' ? `${routes[type].path}/${token}` : routes[type].path
  const [address = '', query = ''] = (url ?? '').split('?')
  if (!address.endsWith(path)) {
    const message = `This is not Better Auth's ${type} email. Postern has no type for other emails, such as one-time codes, deleted accounts and confirmations of a change of address: send them by other means.`
    throw new PosternError('unsupported_email', message)
  }
  const rest = query.split('&').filter((parameter) => parameter !== '' && !parameter.startsWith('token='))
  return { base: address.slice(0, -path.length), rest: rest.join('&') }
}

/** When a verification token ends: a JWT, read and not verified, since Better Auth has just made it. */
function readVerificationToken(token: string): Date {
  const text = fromBase64Url(token.split('.')[1] ?? '')
  const { exp, requestType } = (text === null ? {} : JSON.parse(text)) as {
    exp?: number
    requestType?: string
  }
  if (requestType === 'change-email-confirmation') {
    const message = `Postern has no email type for Better Auth's confirmation of a change of address; send it by other means.`
    throw new PosternError('unsupported_email', message)
  }
  if (typeof exp !== 'number') {
    throw new PosternError(
      'unsupported_email',
      'This verification token is not the JWT that Better Auth makes.',
    )
  }
  return new Date(exp * 1000)
}

/** `{base}/postern/{type}?token=…`; null for every other address. Relative, so it never leaves the origin. */
function answerPage(request: Request, confirm: boolean, appName: string | undefined): Response | null {
  const url = new URL(request.url)
  const type = /\/postern\/(\w+)$/.exec(url.pathname)?.[1] ?? ''
  if (!Object.hasOwn(routes, type)) return null
  const { path, title, button } = routes[type as RoutedType]
  const parts = splitToken(url.searchParams.get('token') ?? '')
  const goOn = parts?.token ? `..${wayOn(type as RoutedType, path, parts.token, parts.rest)}` : null
  // A reset burns nothing until the new password is there, so it needs no button.
  if (goOn !== null && (!confirm || type === 'password_reset')) {
    return new Response(null, { status: 303, headers: { location: goOn, 'cache-control': 'no-store' } })
  }
  return answerConfirm(
    request,
    { title: appName && type === 'magic_link' ? `${title} to ${appName}` : title, button },
    goOn,
  )
}

function wayOn(type: RoutedType, path: string, token: string, rest: string): string {
  const encoded = encodeURIComponent(token)
  if (type === 'password_reset') return `${path}/${encoded}?${rest}`
  return `${path}?token=${encoded}${rest === '' ? '' : `&${rest}`}`
}
