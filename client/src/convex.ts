/**
 * Convex Auth: an email provider whose links go through Postern. Convex Auth puts its code into
 * `?code=`, and its client signs in with it as soon as a page is opened; here the link leads to a
 * page of the app's, as `?token=`, which signs in when its button is pressed:
 * `signIn('postern', { code: token })`. Sends are always awaited: a Convex action that has returned
 * does not go on.
 */
import type { EmailType, Sender } from './email.ts'
import { checkPage, linkTo } from './link.ts'
import { PosternError } from './postern-error.ts'

export type PosternEmailOptions = {
  readonly postern: Sender
  /** The page with the button: an absolute address without a query; it gets `?token=`. */
  readonly page: string
  /**
   * `magic_link` unless given. The others are for `Password({ verify, reset })`: their pages ask for
   * the address beside the token, and a code counts for the address alone that it was sent to.
   */
  readonly type?: Exclude<EmailType, 'organisation_invite'> | undefined
  /** The provider's id, for `signIn(id)`: `postern` unless given. */
  readonly id?: string | undefined
  /** Seconds that a link lives: an hour unless given. */
  readonly maxAge?: number | undefined
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
    // A magic link's 32 characters suffice without the address. A password of somebody's is set for the
    // address that is given, and not every release of Convex Auth compares it with the code's.
    ...(type === 'magic_link' ? {} : { authorize }),
    async sendVerificationRequest({ identifier, token, expires }: VerificationRequest): Promise<void> {
      await postern.send({ to: identifier, type, url: linkTo(page, token), expiresAt: expires })
    },
  }
}

async function authorize(params: Record<string, unknown>, account: object): Promise<void> {
  if (params.email === (account as { providerAccountId?: unknown }).providerAccountId) return
  throw new PosternError('invalid_config', 'Give signIn the email address that the code was sent to.')
}
