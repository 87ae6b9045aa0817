/**
 * Better Auth: sends its four emails through Postern. The callbacks turn Better Auth's links into links
 * that the service accepts, with the expiry that Better Auth itself applies:
 *
 *   magic link      from the magic-link plugin's `expiresIn`, counted from now
 *   verification    from the token itself, a JWT
 *   password reset  from `resetPasswordTokenExpiresIn`, counted from now
 *   invitation      from the invitation
 *   code            from the emailOTP plugin's `expiresIn`, counted from now
 *
 * A link leads to a page of the app (`pages`), or to a page of the plugin, below Better Auth's path:
 * its button leads on to Better Auth's route, with the callback URLs.
 */
import { type Background, dispatch } from './background.ts'
import {
  type AuthPlugin,
  type CodePages,
  checkCodePages,
  findPlugin,
  type OneTimeCodeEmail,
  requireShown,
  toCodeEmail,
  toEmailType,
  trySignInCode,
} from './better-auth-codes.ts'
import { answerPage, linkToPage, type RoutedType, readVerificationToken, takeApart } from './better-auth-link.ts'
import type { Email, EmailType, Sender } from './email.ts'
import { checkPages, joinToken, linkTo } from './link.ts'
import { type FindLocale, findLocale, type OwnFields } from './locale.ts'
import { withLanguage } from './page-language.ts'
import { PosternError } from './postern-error.ts'

export type { AuthPlugin, CodePages, OneTimeCodeEmail } from './better-auth-codes.ts'
export { fromBrowser } from './locale.ts'

export type BetterAuthEmailOptions = Background & {
  readonly postern: Sender
  /**
   * The app's own pages by type: absolute addresses without a query; `?token=` is added. An invitation
   * needs one; the other types lead to the plugin's page by default.
   */
  readonly pages?: { readonly [type in EmailType]?: string | undefined } | undefined
  /**
   * The app's page where people enter a code of the emailOTP plugin, or a page for each kind of code:
   * absolute addresses without a query. The email's button opens it with the code as `?token=`; the page
   * fills it in and does not submit it.
   */
  readonly codePage?: CodePages | undefined
  /**
   * Shows a code of the emailOTP plugin beside each magic link, for people who open their mail on another
   * device. Postern's app must allow codes.
   */
  readonly code?: boolean | undefined
  /**
   * Set it to false if Postern's hosted links already show a button: the plugin's pages then
   * redirect.
   */
  readonly confirm?: boolean | undefined
  /**
   * The reader's language, for instance `({ user }, request) => user?.locale ?? fromBrowser(request)`.
   * `request` is that of the recipient: there is none for an invitation. Without the option, emails are in
   * the app's own language.
   */
  readonly locale?: FindLocale<[email: LocalisedEmail, request: Request | undefined]>
}

/** The parts of an email that may say its reader's language. */
export type LocalisedEmail = {
  readonly type: EmailType
  readonly email: string
  readonly user?: OwnFields
  readonly metadata?: OwnFields | undefined
}

type LinkEmail = { readonly user: { readonly email: string }; readonly url: string; readonly token: string }

type MagicLinkEmail = {
  readonly email: string
  readonly url: string
  readonly token: string
  readonly metadata?: OwnFields | undefined
}

type InvitationEmail = {
  readonly id: string
  readonly email: string
  readonly organization: { readonly name: string }
  readonly invitation: { readonly expiresAt: Date | string }
  readonly inviter: { readonly user: { readonly name: string; readonly email: string } }
}

/** The options of Better Auth read here. */
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
  readonly plugins?: readonly AuthPlugin[] | undefined
}

type CallbackContext = {
  readonly context: { readonly options: AuthOptions }
  readonly request?: Request | undefined
}

/**
 * The plugin and the callbacks. The plugin supplies `sendVerificationEmail` and `sendResetPassword`
 * (unless the app has its own) and answers the pages. Pass the others to their plugins:
 * `magicLink({ sendMagicLink })`, `organization({ sendInvitationEmail })`,
 * `emailOTP({ sendVerificationOTP })`.
 */
export function betterAuthEmail(options: BetterAuthEmailOptions) {
  const { pages = {}, confirm = true } = options
  checkPages('pages', pages)
  checkCodePages(options.codePage)
  let auth: AuthOptions | undefined
  /** Better Auth's options; `init` receives them when Better Auth starts. */
  function authOptions(): AuthOptions {
    if (auth !== undefined) return auth
    throw new PosternError('invalid_config', 'Add the plugin to Better Auth: plugins: [email.plugin].')
  }

  const send = newSend(options)
  const sendLink = newLinkSender(options, { send, authOptions })

  async function sendMagicLink(given: MagicLinkEmail, context?: CallbackContext): Promise<void> {
    const { email, metadata } = given
    const { plugins = [] } = context?.context.options ?? authOptions()
    const linkEnds = inSeconds(magicLinkExpiresIn(plugins))
    const made = options.code ? await trySignInCode(options, email, { plugins, ...context }) : null
    const expiresAt = () => (made !== null && made.expiresAt < linkEnds ? made.expiresAt : linkEnds)
    const link = { given, expiresAt, code: made?.code }
    await sendLink({ type: 'magic_link', email, metadata }, link, context?.request)
  }

  const sendVerificationOTP = newCodeSender(options, { send, authOptions })

  async function sendVerificationEmail(given: LinkEmail, request?: Request): Promise<void> {
    const { user, token } = given
    const expiresAt = () => readVerificationToken(token)
    await sendLink({ type: 'email_verification', email: user.email, user }, { given, expiresAt }, request)
  }

  async function sendResetPassword(given: LinkEmail, request?: Request): Promise<void> {
    const { user } = given
    const expiresAt = () => inSeconds(authOptions().emailAndPassword?.resetPasswordTokenExpiresIn || 3600)
    await sendLink({ type: 'password_reset', email: user.email, user }, { given, expiresAt }, request)
  }

  async function sendInvitationEmail(given: InvitationEmail): Promise<void> {
    const email = readInvitation(given, pages.organisation_invite)
    await send(() => email, { type: email.type, email: email.to })
  }

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

  return {
    ...{ plugin, sendMagicLink, sendVerificationOTP },
    ...{ sendVerificationEmail, sendResetPassword, sendInvitationEmail },
  }
}

type Send = (
  makeEmail: (locale: string | undefined) => Email,
  about: LocalisedEmail,
  request?: Request,
  options?: { readonly isCodeAlone?: boolean },
) => Promise<void>

type SenderParts = { readonly send: Send; readonly authOptions: () => AuthOptions }

/** Sends an email in its reader's language. The look-up delays the answer no more than the send. */
const newSend =
  (options: BetterAuthEmailOptions): Send =>
  (makeEmail, about, request, { isCodeAlone = false } = {}) => {
    const sending = findLocale(options, about, request).then(async ({ locale }) => {
      const email = makeEmail(locale)
      const sent = await options.postern.send({ ...email, ...(locale !== undefined && { locale }) })
      if (isCodeAlone) requireShown(sent)
    })
    return dispatch(sending, options)
  }

/** Sends a code alone, with a link to the page where it is typed. */
const newCodeSender =
  ({ codePage }: BetterAuthEmailOptions, { send, authOptions }: SenderParts) =>
  async (given: OneTimeCodeEmail, context?: CallbackContext): Promise<void> => {
    const { plugins = [] } = context?.context.options ?? authOptions()
    const about = { type: toEmailType(given.type) ?? 'magic_link', email: given.email }
    await send(() => toCodeEmail(given, codePage, plugins), about, context?.request, { isCodeAlone: true })
  }

/** Sends an email whose link leads to a page of the app or of the plugin, which is in the same language. */
function newLinkSender({ pages = {} }: BetterAuthEmailOptions, { send, authOptions }: SenderParts) {
  function chooseLink(type: RoutedType, { url, token }: { url: string; token: string }) {
    const { base, rest } = takeApart(type, url, token)
    const page = pages[type]
    if (page !== undefined) return () => linkTo(page, token)
    authOptions()
    return (locale?: string) => linkToPage(base, type, joinToken(token, withLanguage(rest, locale)))
  }

  return async function sendLink(
    about: LocalisedEmail & { readonly type: RoutedType },
    {
      given,
      expiresAt,
      code,
    }: { given: { url: string; token: string }; expiresAt: () => Date; code?: string | undefined },
    request?: Request,
  ): Promise<void> {
    const { type, email: to } = about
    const toLink = chooseLink(type, given)
    const common = { to, type, expiresAt: expiresAt(), ...(code !== undefined && { code }) }
    await send((locale) => ({ ...common, url: toLink(locale) }), about, request)
  }
}

type LinkSender = (given: LinkEmail, request?: Request) => Promise<void>

/**
 * The callbacks for the features that the app uses. Better Auth keeps the app's own callbacks. No
 * feature is enabled here: an endpoint that sends mail is open to strangers.
 */
function supply(
  auth: AuthOptions,
  { sendVerificationEmail, sendResetPassword }: { [name in 'sendVerificationEmail' | 'sendResetPassword']: LinkSender },
) {
  return {
    ...(usesVerification(auth) && { emailVerification: { sendVerificationEmail } }),
    ...(auth.emailAndPassword?.enabled && { emailAndPassword: { enabled: true, sendResetPassword } }),
  }
}

/** Whether the app verifies addresses, by links rather than by codes. */
function usesVerification({ emailVerification, emailAndPassword, user, plugins = [] }: AuthOptions): boolean {
  const codes = findPlugin(plugins)?.options as { overrideDefaultEmailVerification?: boolean } | undefined
  if (codes?.overrideDefaultEmailVerification) return false
  const asked = emailAndPassword?.requireEmailVerification || user?.changeEmail?.enabled
  return emailVerification !== undefined || asked === true
}

// Better Auth's default in seconds, like 3600 above.
function magicLinkExpiresIn(plugins: NonNullable<AuthOptions['plugins']>): number {
  const plugin = plugins.find(({ id }) => id === 'magic-link')
  return ((plugin?.options ?? {}) as { expiresIn?: number }).expiresIn || 300
}

function readInvitation(given: InvitationEmail, page: string | undefined): Email {
  if (page === undefined) {
    const message = 'Set pages.organisation_invite to the page that accepts an invitation.'
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
