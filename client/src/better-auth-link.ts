/**
 * Better Auth's own links, and the plugin's pages that lead to them: `{base}/postern/{type}?token=…`,
 * where `base` is Better Auth's path. The `token` of a page includes the link's other parameters.
 */
import { answerConfirm, hostOf, isolate } from './confirm-page.ts'
import { fromBase64Url, linkTo, otherParameters, splitToken } from './link.ts'
import { takeLanguage, wordsOf } from './page-language.ts'
import { PosternError } from './postern-error.ts'

/** Better Auth's routes of the types that the plugin answers. */
const routes = {
  magic_link: '/magic-link/verify',
  email_verification: '/verify-email',
  password_reset: '/reset-password',
} as const

export type RoutedType = keyof typeof routes

export const linkToPage = (base: string, type: RoutedType, joined: string): string =>
  linkTo(`${base}/postern/${type}`, joined)

/** Splits Better Auth's link into its base and its other parameters. */
export function takeApart(type: RoutedType, url: string, token: string): { base: string; rest: string } {
  const path = type === 'password_reset' ? `${routes[type]}/${token}` : routes[type]
  const [address = '', query = ''] = (url ?? '').split('?')
  if (!address.endsWith(path)) {
    const message = `This is not Better Auth's ${type} email. Postern has no type for other emails, such as deleted accounts and confirmations of a change of address: send them by other means. Codes go to sendVerificationOTP.`
    throw new PosternError('unsupported_email', message)
  }
  return { base: address.slice(0, -path.length), rest: otherParameters(query) }
}

/** When a verification token expires. The JWT is not verified: Better Auth has just made it. */
export function readVerificationToken(token: string): Date {
  const { exp, requestType } = readClaims(token)
  if (requestType === 'change-email-confirmation') {
    const message = `Postern has no email type for Better Auth's confirmation of a change of address; send it by other means.`
    throw new PosternError('unsupported_email', message)
  }
  if (typeof exp !== 'number') {
    throw new PosternError('unsupported_email', 'This verification token is not the JWT that Better Auth makes.')
  }
  return new Date(exp * 1000)
}

// The parser's error would quote part of the token.
function readClaims(token: string): { exp?: unknown; requestType?: unknown } {
  try {
    return JSON.parse(fromBase64Url(token.split('.')[1] ?? '') ?? '{}') ?? {}
  } catch {
    return {}
  }
}

/** Answers `{base}/postern/{type}?token=…`, else null. Redirects are relative: they stay on the origin. */
export function answerPage(request: Request, confirm: boolean, appName: string | undefined): Response | null {
  const url = new URL(request.url)
  const [, type = '', slash = ''] = /\/postern\/(\w+)(\/?)$/.exec(url.pathname) ?? []
  if (!Object.hasOwn(routes, type)) return null
  const parts = splitToken(url.searchParams.get('token') ?? '')
  if (!parts?.token) return answerConfirm(request, null)
  const { language, rest } = takeLanguage(parts.rest)
  const goOn = `${slash === '' ? '' : '../'}..${wayOn(type as RoutedType, parts.token, rest)}`
  // A reset token is used up by the new password, not by the link: no button.
  if (!confirm || type === 'password_reset') {
    return new Response(null, { status: 303, headers: { location: goOn, 'cache-control': 'no-store' } })
  }
  const words = wordsOf(language)
  const app = appName || hostOf(request)
  const texts =
    type === 'email_verification'
      ? { app, title: words.confirmAddress, button: words.confirm }
      : { title: words.signInTo.replace('{app}', () => isolate(app)), button: words.signIn }
  return answerConfirm(request, { language, goOn, ...texts })
}

function wayOn(type: RoutedType, token: string, rest: string): string {
  const path = routes[type]
  const encoded = encodeURIComponent(token)
  if (type === 'password_reset') return `${path}/${encoded}?${rest}`
  return `${path}?token=${encoded}${rest === '' ? '' : `&${rest}`}`
}
