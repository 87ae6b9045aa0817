/**
 * Convex Auth: an email provider that sends through Postern. Convex Auth puts its code into `?code=`,
 * and its client signs in as soon as a page with it is opened. Here the link leads to a page of the
 * app with the code as `?token=`, and the page's button signs in: `signIn('postern', { code: token })`.
 * Sends are always awaited: a Convex action that has returned does not continue.
 */
import type { EmailType, Sender } from './email.ts'
import { checkPage, linkTo } from './link.ts'
import { type FindLocale, findLocale } from './locale.ts'
import { isCode } from './one-time-code.ts'
import { PosternError } from './postern-error.ts'

export type PosternEmailOptions = {
  readonly postern: Sender
  /** The page with the button: an absolute address without a query; it gets `?token=`. */
  readonly page: string
  /**
   * Default `magic_link`. The others are for `Password({ verify, reset })`: their pages also ask for
   * the address, and a code is valid only for the address it was sent to.
   */
  readonly type?: Exclude<EmailType, 'organisation_invite'> | undefined
  /** The provider's id, for `signIn(id)`. Default `postern`. */
  readonly id?: string | undefined
  /** Lifetime of a link in seconds. Default one hour. */
  readonly maxAge?: number | undefined
  /**
   * Shows the code of Convex Auth, which is also the link's token, if it is one that people can type: set the
   * provider's `generateVerificationToken`, since the usual one has 32 characters. The page then also asks
   * for the address, as such a code is valid only with it. Postern's app must allow codes.
   */
  readonly code?: boolean | undefined
  /**
   * The reader's language, for instance from your tables by `ctx`. Without it, emails are in the app's own
   * language.
   */
  readonly locale?: FindLocale<[email: VerificationRequest, ctx: unknown]>
}

type VerificationRequest = { readonly identifier: string; readonly token: string; readonly expires: Date }

/** The provider, for `convexAuth({ providers: [posternEmail({ postern, page })] })`. */
export function posternEmail(options: PosternEmailOptions) {
  const { postern, page, type = 'magic_link', id = 'postern', maxAge = 60 * 60 } = options
  checkPage('page', page)
  return {
    id,
    type: 'email' as const,
    name: 'Email',
    maxAge,
    // A magic link's 32 characters suffice without the address; a code to type does not. A password is set
    // for the given address, and not every release of Convex Auth checks that the code was sent there.
    ...(type === 'magic_link' && !options.code ? {} : { authorize }),
    async sendVerificationRequest(given: VerificationRequest, ctx?: unknown): Promise<void> {
      const { identifier, token, expires } = given
      const language = await findLocale(options, given, ctx)
      const shown = options.code && isCode(token) ? { code: token } : {}
      const email = { to: identifier, type, url: linkTo(page, token), expiresAt: expires }
      await postern.send({ ...email, ...shown, ...language })
    },
  }
}

async function authorize(params: Record<string, unknown>, account: object): Promise<void> {
  if (params.email === (account as { providerAccountId?: unknown }).providerAccountId) return
  throw new PosternError('invalid_config', 'Give signIn the email address that the code was sent to.')
}
