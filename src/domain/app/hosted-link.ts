/**
 * Whether an email carries a hosted link, and what that link opens. Hosted links serve destinations
 * that mail clients strip (app schemes) or that link scanners open. The allow-list always checks
 * the link of the request; a destination set by the app is checked as well.
 */

import type { AppId } from '../id.ts'
import type { Issue } from '../parsed.ts'
import { type AuthLink, parseAuthLink, parseOriginalLink } from '../request/auth-link.ts'
import type { Purpose } from '../request/email-content.ts'
import type { EmailType } from '../request/email-kinds.ts'
import { checkLinkAllowed, type LinkPolicy } from './allowed-url.ts'

export const hostedLinkModes = ['auto', 'off', 'app-schemes', 'always'] as const
export type HostedLinkMode = (typeof hostedLinkModes)[number]

/** The app settings that control hosted links. A destination has neither query nor fragment. */
type HostedLinkSettings = {
  readonly hostedLinks: HostedLinkMode
  readonly linkDestinations: Readonly<Partial<Record<EmailType, string>>>
}

export type HostedLinkPolicy = LinkPolicy &
  HostedLinkSettings & { readonly schemes: ReadonlySet<string>; readonly slug: string }

/** `direct`: the email carries the request's link. `hosted`: one to our page, which opens `destination`. */
export type HostedLinkChoice =
  | { readonly kind: 'direct' }
  | { readonly kind: 'hosted'; readonly destination: AuthLink }
  | { readonly kind: 'misconfigured'; readonly issues: readonly Issue[] }

/** The destination of an email's hosted link, which opens until `expiresAt` (milliseconds since 1970). */
export type LinkTarget = {
  readonly type: EmailType
  readonly purpose?: Purpose
  readonly destination: string
  readonly expiresAt: number
  /** The tag of the email's language; absent for the app's own. */
  readonly locale?: string
}

/** A hosted link is bound to its app, and to its domain; null at the base URL of the service. */
export type LinkOwner = { readonly appId: AppId; readonly domain: string | null }

/** The path of a hosted link below its base URL. */
export const formatHostedPath = (slug: string, sealed: string): string => `/${slug}/${sealed}`

/** That of the link of an auth server: its query has the one parameter that every link has. */
export const formatOriginalPath = (slug: string, sealed: string): string => `/${slug}/go?token=${sealed}`

/** The destination of a hosted link by the settings that its app has now; null if they do not allow it. */
export function findDestination(
  { destination }: LinkTarget,
  policy: LinkPolicy & { readonly schemes: ReadonlySet<string> },
): AuthLink | null {
  const exact = parseAuthLink(destination, policy.schemes)
  // Only what Postern sealed comes here.
  const link = exact.ok ? exact : parseOriginalLink(destination, policy.schemes, false)
  return link.ok && checkLinkAllowed(link.value, policy) === null ? link.value : null
}

type Question = { link: AuthLink; type: EmailType; policy: HostedLinkPolicy; baseUrl: string | null }

/** Pure. Depends only on the settings, the email type and the link. */
export function chooseHostedLink({ link, type, policy, baseUrl }: Question): HostedLinkChoice {
  const { hostedLinks } = policy
  if (hostedLinks === 'off') return { kind: 'direct' }
  const set = policy.linkDestinations[type]
  const destination = set === undefined ? link : readDestination(set, link, policy)
  const toApp = set === undefined ? link.kind === 'app' : !/^https?:/i.test(set)
  const wanted = hostedLinks === 'always' || toApp
  if (!wanted || (hostedLinks === 'auto' && baseUrl === null)) return { kind: 'direct' }
  const issues = checkBaseUrl(baseUrl)
  if (typeof destination === 'string') {
    issues.push(issue('destination_invalid', `linkDestinations.${type}: ${destination}`))
  }
  if (issues.length > 0 || typeof destination === 'string') return { kind: 'misconfigured', issues }
  return { kind: 'hosted', destination }
}

const issue = (code: string, message: string): Issue => ({ field: 'hostedLinks', code, message })

/** https, or http on loopback for development. */
export const isLinksBaseUrl = (text: string): boolean =>
  URL.canParse(text) &&
  (/^https:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/.test(text) ||
    /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/[^?#\s]*)?$/.test(text))

function checkBaseUrl(baseUrl: string | null): Issue[] {
  if (baseUrl === null) {
    const message = 'The service has no POSTERN_LINKS_BASE_URL; set it, or the app’s hostedLinks to auto or off.'
    return [issue('base_url_missing', message)]
  }
  if (isLinksBaseUrl(baseUrl)) return []
  return [issue('base_url_insecure', 'POSTERN_LINKS_BASE_URL must begin with https://.')]
}

/** The app's own destination with the request's token as its only parameter, or what is wrong with it. */
function readDestination(set: string, link: AuthLink, policy: HostedLinkPolicy): AuthLink | string {
  const fault = checkDestination(set, policy)
  if (fault !== null) return fault
  const token = /\?(token=[^#]*)/.exec(link.raw)?.[1] ?? ''
  const parsed = parseAuthLink(`${set}?${token}`, policy.schemes)
  return parsed.ok ? parsed.value : (parsed.issues[0]?.message ?? 'it is not a link')
}

/** Returns the fault of a destination, or null. Also checked when the destination is set. */
export function checkDestination(set: string, policy: LinkPolicy & { schemes: ReadonlySet<string> }): string | null {
  if (/[?#]/.test(set)) return 'a destination must have no query or fragment; the token is added to it.'
  const parsed = parseAuthLink(`${set}?token=x`, policy.schemes)
  if (!parsed.ok) return parsed.issues[0]?.message ?? 'it is not a link.'
  const difference = checkLinkAllowed(parsed.value, policy)
  return difference === null ? null : `${difference.compared} ${difference.why}`
}
