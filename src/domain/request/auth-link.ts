/**
 * The authentication link (spec 2.3 rules 1 and 2). Grammar, checked on the raw text, because
 * WHATWG `URL` repairs input that must be refused (`https:\\evil`, tabs, `127.1`, `0x7f.1`):
 *
 *   link   = web / app            1 to 8192 characters of \x21-\x7e, none of \ " < >
 *   web    = ("https" / "http") "://" host [":" port] [path] "?" query ["#" fragment]
 *            http only where the host is exactly localhost or 127.0.0.1
 *   app    = scheme ":" ["//" authority] [path] "?" query ["#" fragment]
 *            the scheme is one of the app's
 *   query  = "token=" 1*(any but "&" ";")       decodes as UTF-8, neither blank nor with controls
 *
 * `app/allowed-url.ts` decides whether a well-formed link is allowed for the app.
 */
import { issuesOf, type Parsed, parsed, refused, refuser } from '../parsed.ts'

/** A link that satisfies rules 1 and 2. `href` is what the email carries. */
export type AuthLink = {
  readonly kind: 'web' | 'app'
  /** The link as it was given. A hosted link seals this text, and it is parsed again when opened. */
  readonly raw: string
  readonly href: string
  /** The value of the parameter `token`, decoded; empty for the link of an auth server. */
  readonly token: string
  /** Lower case, without the colon. */
  readonly scheme: string
  /** Web link: host and port in lower case, without the default port. App link: its authority, or null. */
  readonly authority: string | null
  /** The path without query and fragment. The dot segments of a web link are resolved. */
  readonly path: string
  /** The path as it was written: prefix entries are matched against it. */
  readonly rawPath: string
}

const linkCharactersMax = 8192
const shape = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/is
const webAuthority = /^(\[[0-9a-f:.]+\]|[^:@[\]\\]+)(?::(\d{1,5}))?$/i

const originMax = 253

const hostShape = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * The scheme, host and port of a link that is refused; of an app link its scheme alone. Null if they do not
 * stand where a link has them: a repaired link, as `URL` makes one, could have its token for a host.
 */
export function readOrigin(raw: string, appSchemes: ReadonlySet<string>): string | null {
  const [, rawScheme = '', authority = ''] = shape.exec(raw) ?? []
  const scheme = rawScheme.toLowerCase()
  if (appSchemes.has(scheme)) return `${scheme}:`
  const isWeb = (scheme === 'https' || scheme === 'http') && hostShape.test(authority)
  return isWeb ? `${scheme}://${authority.toLowerCase()}`.slice(0, originMax) : null
}

/** Reads a link. `appSchemes` are the schemes of the app's settings, in lower case. */
export const parseAuthLink = (raw: string, appSchemes: ReadonlySet<string>): Parsed<AuthLink> =>
  readLink(raw, appSchemes, readToken)

/**
 * Reads the link of an auth server, which is the same but for its query: that may have any parameters. It is
 * never sent as it is; a hosted link opens it.
 * @param hasQuery false if its secret may be in the path
 */
export const parseOriginalLink = (raw: string, appSchemes: ReadonlySet<string>, hasQuery = true): Parsed<AuthLink> =>
  readLink(raw, appSchemes, (query = '') =>
    hasQuery && query === '' ? refuse('query_missing', 'The link has no query, so it holds no secret.') : parsed(''),
  )

/** The link of an auth server has no parameter `token` of its own, or others beside it. */
export const isOriginal = ({ token }: AuthLink): boolean => token === ''

const refuse = refuser('url')

function readLink(
  raw: string,
  appSchemes: ReadonlySet<string>,
  readQuery: (query: string | undefined) => Parsed<string>,
): Parsed<AuthLink> {
  if (raw.length > linkCharactersMax) return refuse('too_long', `At most ${linkCharactersMax} characters.`)
  if (!/^[\x21-\x7e]+$/.test(raw) || /[\\"<>]/.test(raw)) {
    return refuse(
      'forbidden_character',
      'Only printable ASCII without spaces, quotes, backslashes, < or >; percent-encode the rest.',
    )
  }
  const [, rawScheme, authority, path = '', query] = shape.exec(raw) ?? []
  if (rawScheme === undefined)
    return refuse('not_absolute', 'Give an absolute link that begins with its scheme, such as https://.')
  const scheme = rawScheme.toLowerCase()
  const web = scheme === 'https' || scheme === 'http'
  const location = web ? readWeb(raw, scheme, authority) : readApp(raw, scheme, { authority, path }, appSchemes)
  const token = readQuery(query)
  if (location.ok && token.ok) return parsed({ ...location.value, raw, rawPath: path, token: token.value })
  return refused(...issuesOf([location, token]))
}

type LinkLocation = Omit<AuthLink, 'raw' | 'rawPath' | 'token'>

// Spec 2.3 rule 1, for https and for the two local-development hosts.
function readWeb(raw: string, scheme: string, authority: string | undefined): Parsed<LinkLocation> {
  if (authority?.includes('@')) return refuse('userinfo', 'Leave out user name and password before the host.')
  const host = webAuthority.exec(authority ?? '')?.[1]?.toLowerCase()
  if (host === undefined)
    return refuse('malformed_host', 'After the scheme, write two slashes, a host and optionally a port.')
  if (scheme === 'http' && host !== 'localhost' && host !== '127.0.0.1') {
    return refuse('scheme_not_allowed', 'Use https; http is for the hosts localhost and 127.0.0.1 only.')
  }
  const url = URL.parse(escapeLoose(raw))
  if (url === null || url.hostname !== host || /^\.|\.\.|\.$/.test(host)) {
    return refuse(
      'malformed_host',
      'The host must be written plainly: no percent signs, odd numbers, empty labels or trailing dot.',
    )
  }
  return parsed({ kind: 'web', href: url.href, scheme, authority: url.host, path: url.pathname })
}

function readApp(
  raw: string,
  scheme: string,
  parts: { authority: string | undefined; path: string },
  appSchemes: ReadonlySet<string>,
): Parsed<LinkLocation> {
  if (!appSchemes.has(scheme))
    return refuse('scheme_not_allowed', "The scheme must be https, or one of the app's allowed schemes.")
  const href = escapeLoose(raw)
  // An authority that no URL parser takes (`acme://@`, `acme://:80`) would be a dead link.
  if (URL.parse(href) === null)
    return refuse('malformed_host', 'The text after the two slashes is not an authority: leave it out, or name a host.')
  return parsed({ kind: 'app', href, scheme, authority: parts.authority ?? null, path: parts.path })
}

// `URL` does not escape these five characters in a query, and mail clients end links at them.
const escapeLoose = (raw: string): string => raw.replace(/[|^{}`]/g, encodeURIComponent)

// Spec 2.3 rule 2: exactly one parameter, named `token`, with a value.
function readToken(query: string | undefined): Parsed<string> {
  if (query === undefined) return refuse('query_missing', 'Put the token in the query: ?token=…')
  if (query === 'token=' || query === 'token') return refuse('token_empty', 'The parameter token has no value.')
  const value = /^token=([^&;]+)$/.exec(query)?.[1]
  if (value === undefined) return refuse('query_not_exactly_token', explainQuery(query))
  const decoded = decodeToken(value)
  if (decoded === null) return refuse('token_undecodable', 'The token is not percent-encoded UTF-8.')
  if (decoded.trim() === '') return refuse('token_empty', 'The token is blank.')
  if (/\p{Cc}/u.test(decoded)) return refuse('token_with_controls', 'The token holds control characters.')
  return parsed(decoded)
}

function explainQuery(query: string): string {
  const rule = 'The query must hold exactly one parameter, named token: ?token=…'
  return /[&;]/.test(query)
    ? `${rule} Put other values into the path, or store them with the token.`
    : `${rule} If your library uses another name, send the address of a page of your own that takes token and redirects.`
}

function decodeToken(value: string): string | null {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '))
  } catch {
    return null
  }
}
