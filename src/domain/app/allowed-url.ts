/**
 * The allow-list of an app (spec 2.3 rule 3): which well-formed links it may send. Entries are
 * structured and matched part by part, never by `startsWith` or a pattern over the whole text.
 *
 *   web entry = scheme "://" host [":" port] ["/" / path / prefix "/*"]     no query, no fragment
 *               host may begin with "*." for exactly one label, but not above a public suffix
 *   app entry = scheme ["://" authority [path]] / scheme ":" path
 *
 * An entry with no path, or only "/", allows the whole origin; an app scheme listed alone allows
 * every link of that scheme. The query and the fragment of a link are not matched.
 */
import { parse as parseDomain } from 'tldts'
import { type Parsed, parsed, refused } from '../parsed.ts'
import type { AuthLink } from '../request/auth-link.ts'

/** One entry. `text` is how it was written, in its normal form; null parts match anything. */
export type AllowedUrl = {
  readonly text: string
  readonly scheme: string
  readonly authority: string | null
  readonly oneMoreLabel: boolean
  readonly path: string | null
  readonly prefix: boolean
}

const standardSchemes = new Set(
  'http https ws wss ftp javascript data vbscript file blob about filesystem intent view-source content mailto tel sms'.split(
    ' ',
  ),
)
const localHosts = new Set(['localhost', '127.0.0.1'])

/** Reads an entry of `allowedUrls`. */
export function parseAllowedUrl(text: string): Parsed<AllowedUrl> {
  const refuse = (code: string, message: string) =>
    refused({ field: 'allowedUrls', code, message: `"${text}": ${message}` })
  const match = /^(https?):\/\/(\*\.)?([^/?#*\\@\s]+)(\/[^?#*\\\s]*)?(\*)?$/i.exec(text)
  if (match === null) {
    return refuse(
      'malformed_entry',
      'write scheme, host and perhaps a path, as in https://app.example.com/auth/*.',
    )
  }
  const [, scheme = '', wildcard, rawHost = '', path = '', star] = match
  const url = URL.parse(`${scheme}://${rawHost}${path}`)
  if (url === null || url.host !== withoutDefaultPort(scheme, rawHost) || /^\.|\.\.|\.$/.test(url.hostname)) {
    return refuse('malformed_host', 'the host is not a plain host name with an optional port.')
  }
  if (url.protocol === 'http:' && !localHosts.has(url.hostname)) {
    return refuse('insecure_scheme', 'http is for localhost and 127.0.0.1 only; use https.')
  }
  if (star !== undefined && !path.endsWith('/')) {
    return refuse('malformed_path', 'a prefix ends in /*, on a segment boundary.')
  }
  if (url.pathname !== (path || '/') || /%2e|%2f|%5c|\/\//i.test(path)) {
    return refuse(
      'malformed_path',
      'write the path plainly, without dot segments, double slashes or encoded ones.',
    )
  }
  if (wildcard !== undefined && !mayTakeWildcard(url.hostname)) {
    return refuse(
      'wildcard_too_wide',
      'a wildcard must stand below a domain of your own, not on a public suffix.',
    )
  }
  return parsed(
    webEntry(url, {
      path: path === '/' && star === undefined ? '' : path,
      wildcard: wildcard !== undefined,
      prefix: star !== undefined,
    }),
  )
}

function webEntry(url: URL, parts: { path: string; wildcard: boolean; prefix: boolean }): AllowedUrl {
  const everyPath = parts.path === '' || (parts.path === '/' && parts.prefix)
  return {
    text: `${url.protocol}//${parts.wildcard ? '*.' : ''}${url.host}${parts.path}${parts.prefix ? '*' : ''}`,
    scheme: url.protocol.slice(0, -1),
    authority: url.host,
    oneMoreLabel: parts.wildcard,
    path: everyPath ? null : parts.path,
    prefix: parts.prefix,
  }
}

const withoutDefaultPort = (scheme: string, host: string): string =>
  host.toLowerCase().replace(scheme.toLowerCase() === 'https' ? /:443$/ : /:80$/, '')

// `*.vercel.app` would allow every customer of a host: the private section counts too.
function mayTakeWildcard(hostname: string): boolean {
  const domain = parseDomain(hostname, { allowPrivateDomains: true })
  return (
    domain.isIp !== true && domain.domain !== null && (domain.isIcann === true || domain.isPrivate === true)
  )
}

/** Reads an entry of `appSchemes`. */
export function parseAppScheme(text: string): Parsed<AllowedUrl> {
  const refuse = (code: string, message: string) =>
    refused({ field: 'appSchemes', code, message: `"${text}": ${message}` })
  const match = /^([a-z][a-z0-9+.-]*)(?::(?:\/\/([^/?#\\\s]*))?([^?#\\\s]*))?$/i.exec(text)
  if (match === null) return refuse('malformed_entry', 'write a scheme such as acme, or acme://auth/magic.')
  const [, rawScheme = '', authority, path = ''] = match
  const scheme = rawScheme.toLowerCase()
  if (standardSchemes.has(scheme))
    return refuse('standard_scheme', 'this scheme is standard or dangerous and cannot be an app scheme.')
  const prefix = path.endsWith('/*')
  const alone = (authority ?? '') === '' && path === ''
  return parsed({
    text: alone ? scheme : `${scheme}:${authority === undefined ? '' : `//${authority}`}${path}`,
    scheme,
    authority: alone ? null : (authority ?? ''),
    oneMoreLabel: false,
    path: path === '' || path === '/' || path === '/*' ? null : prefix ? path.slice(0, -1) : path,
    prefix,
  })
}

/** What an app allows, as `checkLinkAllowed` needs it. */
export type LinkPolicy = {
  readonly allowedUrls: readonly AllowedUrl[]
  readonly appSchemes: readonly AllowedUrl[]
  readonly allowLocalhost: boolean
}

/** Spec 2.3 rule 3. Null where the link is allowed; otherwise what was compared and what differed. */
export function checkLinkAllowed(link: AuthLink, policy: LinkPolicy): string | null {
  const entries = link.kind === 'web' ? policy.allowedUrls : policy.appSchemes
  const sameOrigin = entries.filter((entry) => matchesOrigin(entry, link))
  if (sameOrigin.some((entry) => matchesPath(entry, link))) return null
  const local = link.kind === 'web' && localHosts.has((link.authority ?? '').replace(/:\d+$/, ''))
  if (local && policy.allowLocalhost) return null
  const origin = link.authority === null ? `${link.scheme}:` : `${link.scheme}://${link.authority}`
  const place = `Compared ${origin} and the path ${link.path || '(none)'}: `
  if (sameOrigin.length > 0) return `${place}the app allows this origin, but not this path.`
  if (local) return `${place}the app allows no links to this machine; set allowLocalhost for development.`
  return `${place}no allowed entry has this scheme, host and port.`
}

function matchesOrigin(entry: AllowedUrl, link: AuthLink): boolean {
  if (entry.scheme !== link.scheme) return false
  if (entry.authority === null) return true
  if (!entry.oneMoreLabel) return entry.authority === (link.authority ?? '')
  const authority = link.authority ?? ''
  const dot = authority.indexOf('.')
  return dot > 0 && authority.slice(dot + 1) === entry.authority
}

function matchesPath(entry: AllowedUrl, link: AuthLink): boolean {
  if (entry.path === null) return true
  if (!entry.prefix) return entry.path === link.path
  // What a server may fold back into another path never matches a prefix.
  if (/%2e|%2f|%5c|\/\/|(?:^|\/)\.{1,2}(?:\/|$)/i.test(link.rawPath)) return false
  return link.path.startsWith(entry.path) // entry.path ends in "/": a segment boundary
}
