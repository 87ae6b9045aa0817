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
import {
  answerPage,
  linkToPage,
  type RoutedType,
  readVerificationToken,
  takeApart,
} from './better-auth-link.ts'
import type { Email, EmailType, Sender } from './email.ts'
import { checkPages, joinToken, linkTo } from './link.ts'
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
  readonly emailVerification?: object | undefined
  readonly user?: { readonly changeEmail?: { readonly enabled: boolean } | undefined } | undefined
  readonly emailAndPassword?:
    | {
        readonly enabled: boolean
        readonly resetPasswordTokenExpiresIn?: number | undefined
        readonly requireEmailVerification?: boolean | undefined
      }
    | undefined
  readonly plugins?: readonly { readonly id: string; readonly options?: unknown }[] | undefined
}

type CallbackContext = { readonly context: { readonly options: AuthOptions } }

/**
 * The plugin and the callbacks. The plugin supplies `sendVerificationEmail` and `sendResetPassword`
 * (unless the app has its own) and answers the pages; the other two are options of their plugins:
 * `magicLink({ sendMagicLink })`, `organization({ sendInvitationEmail })`.
 */
export function betterAuthEmail(options: BetterAuthEmailOptions) {
  const { postern, pages = {}, confirm = true } = options
  checkPages('pages', pages)
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
    return linkToPage(base, type, joinToken(token, rest))
  }

  const send = (email: Email): Promise<void> => dispatch(postern.send(email), options)

  async function sendMagicLink(given: MagicLinkEmail, context?: CallbackContext): Promise<void> {
    const url = linkOf('magic_link', given)
    const plugins = (context?.context.options ?? authOptions()).plugins ?? []
    const expiresAt = inSeconds(magicLinkExpiresIn(plugins))
    await send({ to: given.email, type: 'magic_link', url, expiresAt })
  }

  async function sendVerificationEmail(given: LinkEmail): Promise<void> {
    const url = linkOf('email_verification', given)
    const expiresAt = readVerificationToken(given.token)
    await send({ to: given.user.email, type: 'email_verification', url, expiresAt })
  }

  async function sendResetPassword(given: LinkEmail): Promise<void> {
    const url = linkOf('password_reset', given)
    const expiresAt = inSeconds(authOptions().emailAndPassword?.resetPasswordTokenExpiresIn || 3600)
    await send({ to: given.user.email, type: 'password_reset', url, expiresAt })
  }

  const sendInvitationEmail = async (given: InvitationEmail): Promise<void> =>
    send(readInvitation(given, pages.organisation_invite))

  const plugin = {
    id: 'postern' as const,
    init(context: { options: AuthOptions }) {
      auth = context.options
      return { options: supply(auth, { sendVerificationEmail, sendResetPassword }) }
    },
    async onRequest(request: Request): Promise<{ response: Response } | undefined> {
      const response = answerPage(request, confirm, auth?.appName)
      return response === null ? undefined : { response }
    },
  }

  return { plugin, sendMagicLink, sendVerificationEmail, sendResetPassword, sendInvitationEmail }
}

type LinkSender = (given: LinkEmail) => Promise<void>

/**
 * The callbacks that an app asks for. What it has set itself is kept: Better Auth fills in only what is
 * missing. And nothing is switched on that it has not: an endpoint that sends mail is open to strangers.
 */
function supply(
  auth: AuthOptions,
  {
    sendVerificationEmail,
    sendResetPassword,
  }: { [name in 'sendVerificationEmail' | 'sendResetPassword']: LinkSender },
) {
  return {
    ...(usesVerification(auth) && { emailVerification: { sendVerificationEmail } }),
    ...(auth.emailAndPassword?.enabled && { emailAndPassword: { enabled: true, sendResetPassword } }),
  }
}

/** Whether the app verifies addresses, by links rather than by codes. */
function usesVerification({ emailVerification, emailAndPassword, user, plugins = [] }: AuthOptions): boolean {
  const codes = plugins.find(({ id }) => id === 'email-otp')?.options as
    | { overrideDefaultEmailVerification?: boolean }
    | undefined
  if (codes?.overrideDefaultEmailVerification) return false
  const asked = emailAndPassword?.requireEmailVerification || user?.changeEmail?.enabled
  return emailVerification !== undefined || asked === true
}

// Better Auth's own default, in seconds; so is the reset's above.
function magicLinkExpiresIn(plugins: NonNullable<AuthOptions['plugins']>): number {
  const plugin = plugins.find(({ id }) => id === 'magic-link')
  return ((plugin?.options ?? {}) as { expiresIn?: number }).expiresIn || 300
}

function readInvitation(given: InvitationEmail, page: string | undefined): Email {
  if (page === undefined) {
    const message = 'Name pages.organisation_invite: the page where an invitation is accepted.'
    throw new PosternError('invalid_config', message)
  }
  const { user } = given.inviter
  return {
    to: given.email,
    type: 'organisation_invite',
    url: linkTo(page, given.id),
    expiresAt: given.invitation.expiresAt,
    organisationName: given.organization.name,
    inviterName: user.name || user.email,
  }
}

const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1000)
