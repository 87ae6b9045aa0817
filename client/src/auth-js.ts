/**
 * Auth.js (NextAuth): an email provider that sends through Postern. Auth.js's own link has three
 * parameters; here `token` includes the other two. The link leads to a route of the app, answered
 * by `confirm`, whose button leads on to Auth.js's callback.
 */
import { type Background, dispatch } from './background.ts'
import { answerConfirm, hostOf, isolate } from './confirm-page.ts'
import type { Sender } from './email.ts'
import { checkPage, joinToken, linkTo, splitToken } from './link.ts'
import { type FindLocale, findLocale } from './locale.ts'
import { isCode } from './one-time-code.ts'
import { takeLanguage, withLanguage, wordsOf } from './page-language.ts'
import { PosternError } from './postern-error.ts'

export { fromBrowser } from './locale.ts'

export type PosternProviderOptions = Background & {
  readonly postern: Sender
  /** The route answered by `confirm`: an absolute address on Auth.js's own origin. */
  readonly confirmUrl: string
  /** The provider's id, for `signIn(id)`. Default `postern`. */
  readonly id?: string | undefined
  /** Its name on sign-in pages. Default `Email`. */
  readonly name?: string | undefined
  /** Lifetime of a link in seconds. Default 24 hours. */
  readonly maxAge?: number | undefined
  /**
   * Shows Auth.js's token beside the link, if it is one that people can type: give the provider a
   * `generateVerificationToken`, since the usual one has 64 characters. Postern's app must allow codes.
   */
  readonly code?: boolean | undefined
  /**
   * The reader's language, for instance `({ request }) => fromBrowser(request)`. Without it, emails are in
   * the app's own language.
   */
  readonly locale?: FindLocale<[email: VerificationRequest]>
}

type VerificationRequest = {
  readonly identifier: string
  readonly url: string
  readonly expires: Date
  readonly token: string
  /** The request by which somebody signs in. */
  readonly request?: Request | undefined
}

/** The provider, for `providers: [posternProvider({ postern, confirmUrl })]`. */
export function posternProvider(options: PosternProviderOptions) {
  const { postern, confirmUrl, id = 'postern', name = 'Email', maxAge = 24 * 60 * 60 } = options
  checkPage('confirmUrl', confirmUrl)
  async function send(given: VerificationRequest): Promise<void> {
    const { identifier, url, expires, token } = given
    const rest = wayBack(url, confirmUrl)
    const shown = options.code && isCode(token) ? { code: token } : {}
    const email = { to: identifier, type: 'magic_link', expiresAt: expires, ...shown } as const
    const sending = findLocale(options, given).then(({ locale }) => {
      const link = linkTo(confirmUrl, joinToken(token, withLanguage(rest, locale)))
      return postern.send({ ...email, url: link, ...(locale !== undefined && { locale }) })
    })
    await dispatch(sending, options)
  }
  return {
    id,
    type: 'email' as const,
    name,
    maxAge,
    sendVerificationRequest(request: VerificationRequest): Promise<void> {
      const sending = send(request)
      // Auth.js attaches its handler to this promise late. Without this one, Node would end the process
      // because of an unhandled rejection.
      sending.catch(() => undefined)
      return sending
    },
  }
}

/** The path and query of Auth.js's link, without the token. */
function wayBack(link: string, confirmUrl: string): string {
  const { origin, pathname, searchParams } = new URL(link)
  if (new URL(confirmUrl).origin !== origin) {
    throw new PosternError('invalid_config', `confirmUrl must be on Auth.js's own origin, ${origin}.`)
  }
  searchParams.delete('token')
  return `${pathname}?${searchParams}`
}

/**
 * Answers the route of `confirmUrl`, both GET and POST. In Next.js, `app/auth/confirm/route.ts` is
 * `export { confirm as GET, confirm as POST } from '@postern/client/auth-js'`.
 */
export function confirm(request: Request): Response {
  const joined = new URL(request.url).searchParams.get('token') ?? ''
  const parts = splitToken(joined)
  if (!parts?.token) return answerConfirm(request, null)
  const { language, rest } = takeLanguage(parts.rest)
  if (!callbackPath.test(rest)) return answerConfirm(request, null)
  const { signIn, signInTo } = wordsOf(language)
  const title = signInTo.replace('{app}', () => isolate(hostOf(request)))
  const goOn = `${rest}&token=${encodeURIComponent(parts.token)}`
  return answerConfirm(request, { language, title, button: signIn, goOn })
}

// Only an Auth.js callback on this origin, so that a forged link cannot lead anywhere else.
const callbackPath = /^(?:\/[\w.-]+)*\/callback\/[\w.-]+\?/
