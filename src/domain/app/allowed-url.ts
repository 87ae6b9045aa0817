/**
 * Matches a link with the allow-list of an app (spec 2.3 rule 3): part by part, never by `startsWith` or a
 * pattern over the whole text. The query and the fragment of a link are not matched.
 */
import type { AuthLink } from '../request/auth-link.ts'
import { quoteForShell } from '../shell.ts'
import { type AllowedUrl, foldable, localHosts } from './allowed-entry.ts'

/** The allow-list, as `checkLinkAllowed` needs it. */
export type LinkPolicy = {
  readonly allowedUrls: readonly AllowedUrl[]
  readonly appSchemes: readonly AllowedUrl[]
  readonly allowLocalhost: boolean
}

/**
 * Why a link is not allowed. `flag` is the option of `postern app update` that would allow it.
 * Long path segments are shortened in all three: some libraries put the token into the path.
 */
export type LinkDifference = {
  readonly compared: string
  readonly why: string
  readonly flag: string
  /** The part in which the nearest entry differs; null if no entry could match. */
  readonly differs: ComparedEntry['differs']
}

/**
 * Spec 2.3 rule 3. Null where the link is allowed.
 * @param rule is shown in place of the path, which may hold the secret
 */
export function checkLinkAllowed(link: AuthLink, policy: LinkPolicy, rule?: string): LinkDifference | null {
  const parts = compareEntries(link, policy).map((entry) => entry.differs)
  if (parts.includes(null)) return null
  const differs = nearest.find((part) => parts.includes(part)) ?? null
  const origin = link.authority === null ? `${link.scheme}:` : `${link.scheme}://${link.authority}`
  const path = rule ?? shortenSegments(link.path)
  const compared = `Compared ${origin} and the path ${path || '(none)'}:`
  if (parts.includes('path')) {
    const flag = path === link.path ? `${flagFor(link)} ${quoteForShell(`${origin}${path}`)}` : flagFor(link)
    return { compared, why: 'the app allows this origin, but not this path.', flag, differs }
  }
  if (isLocal(link))
    return { compared, why: 'the app allows no links to localhost.', flag: '--allow-localhost', differs }
  return {
    compared,
    differs,
    why: 'no allowed entry has this scheme, host and port.',
    flag: `${flagFor(link)} ${quoteForShell(link.authority === null ? link.scheme : origin)}`,
  }
}

/** An entry that differs in its path alone is nearer than one that differs in its host. */
const nearest = ['path', 'port', 'host', 'scheme'] as const

const flagFor = (link: AuthLink): string => (link.kind === 'web' ? '--allow-url' : '--app-scheme')

const segmentMax = 20

const shortenSegments = (path: string): string =>
  path
    .split('/')
    .map((segment) => (segment.length > segmentMax ? '…' : segment))
    .join('/')

/**
 * An entry of the allow-list, and the first part in which a link differs from it; null if the entry allows
 * it.
 */
export type ComparedEntry = {
  readonly entry: string
  readonly differs: 'scheme' | 'host' | 'port' | 'path' | null
}

/** Each entry that could allow this kind of link. */
export function compareEntries(link: AuthLink, policy: LinkPolicy): ComparedEntry[] {
  const entries = link.kind === 'web' ? policy.allowedUrls : policy.appSchemes
  const compared = entries.map((entry) => ({ entry: entry.text, differs: differingPart(entry, link) }))
  return policy.allowLocalhost && isLocal(link)
    ? [...compared, { entry: '--allow-localhost', differs: null }]
    : compared
}

const withoutPort = (authority: string | null): string => (authority ?? '').replace(/:\d+$/, '')

const isLocal = (link: AuthLink): boolean => link.kind === 'web' && localHosts.has(withoutPort(link.authority))

function differingPart(entry: AllowedUrl, link: AuthLink): ComparedEntry['differs'] {
  if (entry.scheme !== link.scheme) return 'scheme'
  if (!matchesAuthority(entry, link.authority ?? '')) {
    const anyPort = { ...entry, authority: withoutPort(entry.authority) }
    return matchesAuthority(anyPort, withoutPort(link.authority)) ? 'port' : 'host'
  }
  return matchesPath(entry, link) ? null : 'path'
}

export function matchesAuthority(entry: Pick<AllowedUrl, 'authority' | 'wildcard'>, authority: string): boolean {
  if (entry.authority === null) return true
  if (!entry.wildcard) return entry.authority === authority
  const dot = authority.indexOf('.')
  return dot > 0 && authority.slice(dot + 1) === entry.authority
}

function matchesPath(entry: AllowedUrl, link: AuthLink): boolean {
  if (entry.path === null) return true
  if (!entry.prefix) return entry.path === link.path
  // Judged as it was written: a resolved path no longer shows its dot segments.
  if (foldable.test(link.rawPath) || /(?:^|\/)\.{1,2}(?:\/|$)/.test(link.rawPath)) return false
  return link.path.startsWith(entry.path) // entry.path ends in "/": a segment boundary
}
