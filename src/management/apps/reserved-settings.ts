/**
 * Which changes of an app's settings its own people may not make: those that name something which another
 * tenant, the operator of the service or the reader of an email may own.
 *
 *   name, from, envelopeFrom, limits   an admin of the app; addresses inside its sender domains
 *   senderDomains                      an admin of the whole service, or a proof in DNS
 *   webhookUrl                         an admin of the whole service: Postern connects there
 *   linkDomain, useLinkDomain          an admin of the whole service: another tenant may own the domain
 *   words                              an admin of the whole service: they are most of what an email says
 *   app schemes without a dot          an admin of the whole service: another program may have the scheme
 *   links into a private network       an admin of the whole service: the network is the reader's
 *   links to Postern's own hosts       an admin of the whole service: they lead to other tenants' pages
 *   replyTo, supportContact, logoUrl   an operator of the app, as for other https links: they are shown in
 *                                      mail of its own domain, and Postern does not fetch them
 */
import { isIP } from 'node:net'
import { isPrivateAddress } from '../../dns/private-address.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from '../../domain/app/allowed-entry.ts'
import { matchesAuthority } from '../../domain/app/allowed-url.ts'
import { type AppSettings, settingsFor, withDefaults } from '../../domain/app/settings.ts'
import { bareHost } from '../../domain/client-network.ts'
import { isAtLeast } from '../../domain/operator/management-token.ts'
import type { Issue } from '../../domain/parsed.ts'
import { type Access, isServiceAdmin } from '../operation/access.ts'
import type { Context } from '../operation/operation.ts'
import { fail, type Result } from '../operation/result.ts'

const adminFields = settingsFor('admin')
const serviceFields = settingsFor('service')

const isChanged = (before: AppSettings, after: AppSettings, name: keyof AppSettings): boolean =>
  JSON.stringify(withDefaults(before)[name]) !== JSON.stringify(after[name])

/** Refuses a change that an operator of the app may not make; null if the access may. */
export const refuseAdminFields = (access: Access, before: AppSettings, after: AppSettings): Result<never> | null =>
  !isAtLeast(access.role, 'admin') && adminFields.some((name) => isChanged(before, after, name))
    ? fail('not_permitted', `Only the role admin may change ${adminFields.join(', ')}.`)
    : null

/**
 * Refuses a change that only an admin of the whole service may make; null if the access may.
 * @param after settings that were checked
 */
export function refuseReserved(
  { access, ...context }: Context,
  before: AppSettings,
  after: AppSettings,
): Result<never> | null {
  if (isServiceAdmin(access)) return null
  const issues = [
    ...serviceFields
      .filter((name) => isChanged(before, after, name))
      .map((field) => reserved(field, `Only an admin of the whole service may change ${field}.`)),
    ...checkSchemes(before, after),
    ...checkHosts(ownHostsOf(context), before, after),
  ]
  return issues.length === 0 ? null : fail('not_permitted', issues[0]?.message ?? '', issues)
}

const reserved = (field: keyof AppSettings, message: string): Issue => ({
  field,
  code: 'needs_service_admin',
  message,
})

/** With a dot inside, as in `com.acme.app`. */
const domainName = /^[a-z0-9+-]+(?:\.[a-z0-9+-]+)+$/

/** RFC 8252 section 7.1: the scheme of an app is a domain name of its maker, in reverse order. */
function checkSchemes(before: AppSettings, after: AppSettings): Issue[] {
  const readSchemes = ({ appSchemes }: AppSettings) =>
    appSchemes.flatMap((text) => {
      const entry = parseAppScheme(text)
      return entry.ok ? [entry.value.scheme] : []
    })
  const known = new Set(readSchemes(before))
  return [...new Set(readSchemes(after))]
    .filter((scheme) => !domainName.test(scheme) && !known.has(scheme))
    .map((scheme) =>
      reserved(
        'appSchemes',
        `"${scheme}": only an admin of the whole service may allow a scheme without a dot, because another program may have it. Use the name of a domain of yours in reverse order, as in com.acme.app (RFC 8252).`,
      ),
    )
}

/** Hosts, with their ports, at which this service answers people and auth servers. */
const ownHostsOf = ({ consoleUrl, authHooksUrl, links }: Pick<Context, 'consoleUrl' | 'authHooksUrl' | 'links'>) =>
  [consoleUrl, authHooksUrl, links.baseUrl].flatMap((url) => (url === null ? [] : [new URL(url).host]))

function checkHosts(ownHosts: readonly string[], before: AppSettings, after: AppSettings): Issue[] {
  const pages = ['fallbackUrl', 'newEmailUrl'] as const
  const known = new Set([...before.allowedUrls, ...pages.map((field) => before[field])])
  const links = [
    ...after.allowedUrls.map((text) => ['allowedUrls', text] as const),
    ...pages.flatMap((field) => (after[field] === undefined ? [] : [[field, after[field]] as const])),
  ]
  return links.flatMap(([field, text]) => {
    const reason = known.has(text) ? null : findReason(readHost(text), ownHosts)
    const message = `"${text}": only an admin of the whole service may allow links ${reason}.`
    return reason === null ? [] : [reserved(field, message)]
  })
}

/** The host of an entry of the allow-list, or of a page. */
function readHost(text: string): Pick<AllowedUrl, 'authority' | 'wildcard'> {
  const entry = parseAllowedUrl(text)
  if (entry.ok) return entry.value
  return { authority: new URL(text).host.replace(/\.(?=$|:)/, ''), wildcard: false }
}

function findReason(host: ReturnType<typeof readHost>, ownHosts: readonly string[]): string | null {
  if (ownHosts.some((own) => matchesAuthority(host, own))) return 'to Postern itself'
  const { hostname } = new URL(`https://${host.authority}`)
  return isInPrivateNetwork(bareHost(hostname)) ? 'into a private network' : null
}

/** Names that public DNS does not have: RFC 6761, 6762, 8375, and `.internal`, which ICANN reserved. */
const privateNames = /(?:^|\.)(?:local|localdomain|localhost|internal|intranet|lan|home|corp|home\.arpa)$/

/** `localhost` has a setting of its own, for development. */
const isInPrivateNetwork = (name: string): boolean =>
  isIP(name) === 0
    ? name !== 'localhost' && (!name.includes('.') || privateNames.test(name))
    : name !== '127.0.0.1' && isPrivateAddress(name)
