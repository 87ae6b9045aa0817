/**
 * Better Auth's own links, and the plugin's pages that lead to them: `{base}/postern/{type}?token=…`,
 * where `base` is Better Auth's path. The `token` of a page includes the link's other parameters.
 */
import { answerConfirm } from './confirm-page.ts'
import { fromBase64Url, linkTo, otherParameters, splitToken } from './link.ts'
import { PosternError } from './postern-error.ts'

/** The types that the plugin answers: Better Auth's route, and the texts of the page. */
const routes = {
  magic_link: { path: '/magic-link/verify', title: 'Sign in', button: 'Sign in' },
  email_verification: { path: '/verify-email', title: 'Verify your email address', button: 'Verify' },
  password_reset: { path: '/reset-password', title: 'Choose a new password', button: 'Continue' },
} as const

export type RoutedType = keyof typeof routes

export const linkToPage = (base: string, type: RoutedType, joined: string): string =>
  linkTo(`${base}/postern/${type}`, joined)

/** Splits Better Auth's link into its base and its other parameters. */
export function takeApart(type: RoutedType, url: string, token: string): { base: string; rest: string } {
  const path = type === 'password_reset' ? `${routes[type].path}/${token}` : routes[type].path
  const [address = '', query = ''] = (url ?? '').split('?')
  if (!address.endsWith(path)) {
    const message = `This is not Better Auth's ${type} email. Postern has no type for other emails, such as one-time codes, deleted accounts and confirmations of a change of address: send them by other means.`
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
    throw new PosternError(
      'unsupported_email',
      'This verification token is not the JWT that Better Auth makes.',
    )
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
  const { path, title, button } = routes[type as RoutedType]
  const parts = splitToken(url.searchParams.get('token') ?? '')
  const goOn = parts?.token
    ? `${slash === '' ? '' : '../'}..${wayOn(type as RoutedType, path, parts.token, parts.rest)}`
    : null
  // A reset token is used up by the new password, not by the link: no button.
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
