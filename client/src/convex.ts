/**
 * Convex Auth: an email provider whose links go through Postern. Convex Auth puts its code into
 * `?code=`, and its client signs in with it as soon as a page is opened; here the link leads to a
 * page of the app's, as `?token=`, which signs in when its button is pressed:
 * `signIn('postern', { code: token })`. Sends are always awaited: a Convex action that has returned
 * does not go on.
 */
import type { EmailType, Sender } from './email.ts'
import { linkTo } from './link.ts'

export type PosternEmailOptions = {
  readonly postern: Sender
  /** The page with the button: an absolute address without a query; it gets `?token=`. */
  readonly page: string
  /**
   * `magic_link` unless given. The others are for `Password({ verify, reset })`, whose pages ask for
   * the address beside the token.
   */
  readonly type?: Exclude<EmailType, 'organisation_invite'> | undefined
  /** The provider's id, for `signIn(id)`: `postern` unless given. */
  readonly id?: string | undefined
  /** Seconds that a link lives: an hour unless given. */
  readonly maxAge?: number | undefined
}

type VerificationRequest = { readonly identifier: string; readonly token: string; readonly expires: Date }

/**
 * The provider, for `convexAuth({ providers: [posternEmail({ postern, page })] })`. It has no
 * `authorize`: Convex Auth's codes of 32 characters suffice without the address beside them.
 */
export function posternEmail(options: PosternEmailOptions) {
  const { postern, page, type = 'magic_link', id = 'postern', maxAge = 60 * 60 } = options
  return {
    id,
    type: 'email' as const,
    name: 'Email',
    maxAge,
    async sendVerificationRequest({ identifier, token, expires }: VerificationRequest): Promise<void> {
      await postern.send({ to: identifier, type, url: linkTo(page, token), expiresAt: expires })
    },
  }
}
