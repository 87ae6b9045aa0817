/**
 * Whether an email gets a hosted link, and what it opens. A hosted link is
 * for destinations that mail clients strip (app schemes) or scanners burn; what the allow-list
 * judges is always the link of the request, and a destination of the app's own is judged again.
 */

import { type AuthLink, parseAuthLink } from '../request/auth-link.ts'
import type { EmailType } from '../request/email-request.ts'
import type { Issue } from '../request/rejection.ts'
import { checkLinkAllowed, type LinkPolicy } from './allowed-url.ts'

export const hostedLinkModes = ['auto', 'off', 'app-schemes', 'always'] as const
export type HostedLinkMode = (typeof hostedLinkModes)[number]

/** The settings of an app that say so. A destination has neither query nor fragment. */
export type HostedLinkSettings = {
  readonly hostedLinks: HostedLinkMode
  readonly linkDestinations: Readonly<Partial<Record<EmailType, string>>>
}

export type HostedLinkPolicy = LinkPolicy &
  HostedLinkSettings & { readonly schemes: ReadonlySet<string>; readonly slug: string }

/** `direct`: the email carries the request's link. `hosted`: it carries one to our page, which opens `destination`. */
export type HostedLinkChoice =
  | { readonly kind: 'direct' }
  | { readonly kind: 'hosted'; readonly destination: AuthLink }
  | { readonly kind: 'misconfigured'; readonly issues: readonly Issue[] }

type Question = { link: AuthLink; type: EmailType; policy: HostedLinkPolicy; baseUrl: string | null }

/** Pure: the same for every email of these settings but for its link. */
export function chooseHostedLink({ link, type, policy, baseUrl }: Question): HostedLinkChoice {
  const { hostedLinks } = policy
  if (hostedLinks === 'off') return { kind: 'direct' }
  const set = policy.linkDestinations[type]
  const destination = set === undefined ? link : readDestination(set, link, policy)
  const toApp = set === undefined ? link.kind === 'app' : !/^https?:/i.test(set)
  const wanted = hostedLinks === 'always' || toApp
  if (!wanted || (hostedLinks === 'auto' && baseUrl === null)) return { kind: 'direct' }
  const issues = [
    ...checkBaseUrl(baseUrl),
    ...(policy.slug === ''
      ? [issue('slug_missing', 'The app has no slug, which hosted links need; create it anew with one.')]
      : []),
    ...(typeof destination === 'string'
      ? [issue('destination_invalid', `linkDestinations.${type}: ${destination}`)]
      : []),
  ]
  if (issues.length > 0 || typeof destination === 'string') return { kind: 'misconfigured', issues }
  return { kind: 'hosted', destination }
}

const issue = (code: string, message: string): Issue => ({ field: 'hostedLinks', code, message })

/** https, or http on loopback for development. */
export const isLinksBaseUrl = (text: string): boolean =>
  /^https:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/.test(text) ||
  /^http:\/\/(?:localhost|127\.0\.0\.1)(?::\d+)?(?:\/[^?#\s]*)?$/.test(text)

function checkBaseUrl(baseUrl: string | null): Issue[] {
  if (baseUrl === null) {
    return [
      issue(
        'base_url_missing',
        'The service has no POSTERN_LINKS_BASE_URL; set it, or the app’s hostedLinks to auto or off.',
      ),
    ]
  }
  return isLinksBaseUrl(baseUrl)
    ? []
    : [issue('base_url_insecure', 'POSTERN_LINKS_BASE_URL must begin with https://.')]
}

/** The app's own destination with the request's token as its only parameter, or what is wrong with it. */
function readDestination(set: string, link: AuthLink, policy: HostedLinkPolicy): AuthLink | string {
  const fault = checkDestination(set, policy)
  if (fault !== null) return fault
  const token = /\?(token=[^#]*)/.exec(link.raw)?.[1] ?? ''
  const parsed = parseAuthLink(`${set}?${token}`, policy.schemes)
  return parsed.ok ? parsed.value : (parsed.issues[0]?.message ?? 'it is not a link')
}

/** What is wrong with a destination, or null. Also asked when it is set. */
export function checkDestination(
  set: string,
  policy: LinkPolicy & { schemes: ReadonlySet<string> },
): string | null {
  if (/[?#]/.test(set)) return 'a destination has no query and no fragment; the token is added to it.'
  const parsed = parseAuthLink(`${set}?token=x`, policy.schemes)
  if (!parsed.ok) return parsed.issues[0]?.message ?? 'it is not a link.'
  return checkLinkAllowed(parsed.value, policy)
}
