/**
 * The entries of an app's allow-list (spec 2.3 rule 3), as operators write them:
 *
 *   web entry = scheme "://" host [":" port] ["/" / path / prefix "/*"]     no query, no fragment
 *               host may begin with "*." for exactly one label, but not above a public suffix
 *   app entry = scheme ["://" authority [path]] / scheme ":" path
 *
 * An entry with no path, or only "/", allows the whole origin; an app scheme listed alone allows
 * every link of that scheme.
 */
import { parse as parseDomain } from 'tldts'
import { type Parsed, parsed, refused } from '../parsed.ts'

/** One entry. `text` is its normal form; null parts match anything. */
export type AllowedUrl = {
  readonly text: string
  readonly scheme: string
  readonly authority: string | null
  /** The entry begins with `*.`: the link's host has exactly one label before `authority`. */
  readonly wildcard: boolean
  readonly path: string | null
  readonly prefix: boolean
}

const standardSchemes = new Set(
  'http https ws wss ftp javascript data vbscript file blob about filesystem intent view-source content mailto tel sms'.split(
    ' ',
  ),
)

/**
 * Schemes by which an operating system or a common program installs, opens or runs what the link names. No
 * app owns them, so nobody can allow them. The list cannot be complete: a scheme without a dot needs an admin
 * of the whole service besides (`management/apps/reserved-settings.ts`).
 */
const programSchemes = new Set(
  [
    // Windows, its help and its file shares; `ms-…` is below.
    'search search-ms shell cmd powershell wsl calculator bingmaps ldap ldaps mk its mhtml res hcp help smb cifs nfs afp dav davs',
    // Stores and installers.
    'market android-app apt snap appstream flatpak itms steam',
    // Remote control, and terminals.
    'ssh sftp scp telnet rlogin tn3270 rdp vnc teamviewer10 teamviewerapi anydesk',
    // Editors and version control, which open folders and run tasks.
    'vscode vscode-insiders vscodium cursor windsurf jetbrains idea git git-client sourcetree x-github-client github-windows',
    // Browsers and their extensions, archives.
    'chrome chrome-extension moz-extension googlechrome googlechromes firefox opera brave edge resource jar wyciwyg',
    // Calls that begin at once.
    'callto facetime facetime-audio sip sips skype zoommtg zoomus msteams',
  ]
    .join(' ')
    .split(' '),
)
const programPrefixes = ['ms-', 'microsoft', 'vnd.ms', 'itms-', 'x-apple', 'onenote', 'onedrive']

const startsProgram = (scheme: string): boolean =>
  programSchemes.has(scheme) || programPrefixes.some((prefix) => scheme.startsWith(prefix))
export const localHosts = new Set(['localhost', '127.0.0.1'])

/**
 * Sequences that a server may fold into another path: no entry holds them, and no prefix matches them. Some
 * servers decode twice (`%252e`), cut a path at a control character (`..%00`), or drop what follows a
 * semicolon (`..;x`).
 */
export const foldable = /%2[5ef]|%5c|%3b|%[01][0-9a-f]|%7f|\/\/|(?:^|\/)\.{1,2};/i

/** No entry is longer. Bounded before it is parsed. */
export const entryCharactersMax = 2000

const webEntryShape = /^(https?):\/\/(\*\.)?([^/?#*\\@\s]+)(?:(\/[^?#*\\\s]*)(\*)?)?$/i

const tooLong = `too long: an entry has at most ${entryCharactersMax} characters.`
const shownMax = 200

const refuseEntry = (field: 'allowedUrls' | 'appSchemes', text: string) => (code: string, message: string) => {
  const shown = text.length > shownMax ? `${text.slice(0, shownMax)}…` : text
  return refused({ field, code, message: `"${shown}": ${message}` })
}

/** Reads an entry of `allowedUrls`. */
export function parseAllowedUrl(text: string): Parsed<AllowedUrl> {
  const refuse = refuseEntry('allowedUrls', text)
  if (text.length > entryCharactersMax) return refuse('too_long', tooLong)
  const match = webEntryShape.exec(text)
  if (match === null) {
    const [, starred] = hostWithStar.exec(text) ?? []
    if (starred !== undefined) return refuse(...explainStar(starred.toLowerCase()))
    return refuse('malformed_entry', 'write scheme, host and optionally a path, as in https://app.example.com/auth/*.')
  }
  const [, scheme = '', star = '', rawHost = '', path = '', prefixStar = ''] = match
  const [wildcard, prefix] = [star !== '', prefixStar !== '']
  const url = URL.parse(`${scheme}://${rawHost}${path}`)
  if (url === null || url.host !== withoutDefaultPort(scheme, rawHost) || /^\.|\.\.|\.$/.test(url.hostname)) {
    return refuse('malformed_host', 'the host is not a plain host name with an optional port.')
  }
  if (url.protocol === 'http:' && !localHosts.has(url.hostname)) {
    return refuse('insecure_scheme', 'http is for localhost and 127.0.0.1 only; use https.')
  }
  const pathFault = checkPath(path, { prefix, normal: url.pathname })
  if (pathFault !== null) return refuse('malformed_path', pathFault)
  const tooWide = wildcard ? wildcardFault(url.hostname) : null
  if (tooWide !== null) return refuse('wildcard_too_wide', tooWide)
  const kept = path === '/' && !prefix ? '' : path
  return parsed({
    text: `${url.protocol}//${star}${url.host}${kept}${prefixStar}`,
    scheme: url.protocol.slice(0, -1),
    authority: url.host,
    wildcard,
    path: kept === '' || kept === '/' ? null : kept,
    prefix,
  })
}

function checkPath(path: string, { prefix, normal }: { prefix: boolean; normal: string }): string | null {
  if (prefix && !path.endsWith('/')) return 'a prefix must end in /*, on a segment boundary.'
  if (normal === (path || '/') && !foldable.test(path)) return null
  return 'write the path plainly, without dot segments, double slashes, or encoded dots, slashes and percent signs.'
}

const withoutDefaultPort = (scheme: string, host: string): string =>
  host.toLowerCase().replace(scheme.toLowerCase() === 'https' ? /:443$/ : /:80$/, '')

/**
 * Names that nobody can register on the Internet, so no public suffix lies below them: RFC 2606, 6762 (with
 * appendix G) and 8375, and .internal of ICANN.
 */
const privateName = /(?:^|\.)(internal|intranet|private|corp|home|lan|local|test|example|home\.arpa)$/

/** Why strangers could own a host below this one; null if they cannot. */
function wildcardFault(hostname: string): string | null {
  const [, own] = privateName.exec(hostname) ?? []
  if (own !== undefined && own !== hostname) return null
  if (own !== undefined) return `it would allow every host of ${own}: name one, as in https://*.NAME.${own}.`
  // `*.vercel.app` would allow every customer of a hosting service: the list's private section counts too.
  const { domain, isIcann, isIp, isPrivate, publicSuffix } = parseDomain(hostname, { allowPrivateDomains: true })
  if (isIp === true) return `${hostname} is an IP address, which has no names below it.`
  if (isIcann !== true && isPrivate !== true)
    return `Postern does not know who registers names below ${publicSuffix ?? hostname}: list each host.`
  return domain === null ? `anyone can register names under ${hostname}: list each host.` : null
}

/** A star that is no label of its own at the beginning. */
const hostWithStar = /^https?:\/\/([^/?#\\@\s]*\*[^/?#\\@\s]*)/i

function explainStar(host: string): [code: string, message: string] {
  const [name = '', port = ''] = host.split(':')
  if (port.includes('*')) {
    const others = localHosts.has(name) ? '--allow-localhost allows every port of it.' : 'list each port.'
    return ['wildcard_port', `a port cannot be a star: ${others}`]
  }
  const [first = ''] = name.split('.', 1)
  const base = name.slice(first.length + 1)
  if (!first.includes('*') || base.includes('*'))
    return ['partial_wildcard', 'a star stands for the first label alone, as in https://*.preview.example.com.']
  const tooWide = wildcardFault(base)
  if (tooWide !== null) return ['wildcard_too_wide', tooWide]
  return ['partial_wildcard', `a star stands for a whole label: https://*.${base}`]
}

/** Reads an entry of `appSchemes`. */
export function parseAppScheme(text: string): Parsed<AllowedUrl> {
  const refuse = refuseEntry('appSchemes', text)
  if (text.length > entryCharactersMax) return refuse('too_long', tooLong)
  const match = /^([a-z][a-z0-9+.-]*)(?::([^?#\\\s]*))?$/i.exec(text)
  if (match === null) return refuse('malformed_entry', 'write a scheme such as acme, or acme://auth/magic.')
  const [, rawScheme = '', rest = ''] = match
  const { authority, path } = splitAuthority(everyLink.test(rest) ? '' : rest)
  const scheme = rawScheme.toLowerCase()
  if (standardSchemes.has(scheme))
    return refuse('standard_scheme', 'this scheme is standard or dangerous and cannot be an app scheme.')
  if (startsProgram(scheme))
    return refuse('program_scheme', 'this scheme opens or installs other programs and cannot be an app scheme.')
  const prefix = path.endsWith('/*')
  const misplaced = checkStars(scheme, authority, prefix ? path.slice(0, -2) : path)
  if (misplaced !== null) return refuse('misplaced_star', misplaced)
  const alone = (authority ?? '') === '' && path === ''
  return parsed({
    text: alone ? scheme : `${scheme}:${authority === undefined ? '' : `//${authority}`}${path}`,
    scheme,
    authority: alone ? null : (authority ?? ''),
    wildcard: false,
    path: path === '' || path === '/' || path === '/*' ? null : prefix ? path.slice(0, -1) : path,
    prefix,
  })
}

/** As other systems write that every link of a scheme is allowed. */
const everyLink = /^(?:\/\/\*[*/]*|\*+)$/

function checkStars(scheme: string, authority: string | undefined, path: string): string | null {
  if (!`${authority}${path}`.includes('*')) return null
  const folder = path.slice(0, path.indexOf('*')).lastIndexOf('/')
  if (authority?.includes('*') || folder < 0)
    return `a star can only end a path, as /*: write ${scheme} for every link of this scheme.`
  const start = authority === undefined ? `${scheme}:` : `${scheme}://${authority}`
  return `a star can only end a path: write ${start}${path.slice(0, folder)}/* for everything below it.`
}

/** Cuts at the first slash behind the two that begin an authority. */
function splitAuthority(rest: string): { authority: string | undefined; path: string } {
  if (!rest.startsWith('//')) return { authority: undefined, path: rest }
  const slash = rest.indexOf('/', 2)
  const end = slash < 0 ? rest.length : slash
  return { authority: rest.slice(2, end), path: rest.slice(end) }
}

/**
 * Each entry once and in its normal form. Entries that are malformed stay, so that they are refused with
 * their reason.
 */
export const normalEntries = (entries: readonly string[], parse: (text: string) => Parsed<AllowedUrl>): string[] => [
  ...new Set(
    entries.map((text) => {
      const entry = parse(text)
      return entry.ok ? entry.value.text : text
    }),
  ),
]
