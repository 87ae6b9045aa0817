/**
 * The domain of an app's own at which the pages of its hosted links are served. A hosted link is bound to its
 * domain, so that the pages of one tenant never appear at the domain of another.
 */
import { type Parsed, refuser } from '../parsed.ts'
import { parseSenderDomain } from './sender-domains.ts'

/**
 * Where hosted links of an app are. `domain`: the one that they are bound to; null at the base URL of the
 * service.
 */
export type LinkPlace = { readonly baseUrl: string; readonly domain: string | null }

/** Reads a domain name in lower case and as A-labels, as it arrives in a Host header. */
export function parseLinkDomain(text: string, field = 'linkDomain'): Parsed<string> {
  const domain = parseSenderDomain(text, field)
  // Some versions of Node read no URL with a malformed A-label.
  if (!domain.ok || (domain.value === text && URL.canParse(`https://${text}`))) return domain
  return refuser(field)('malformed_domain', `Write the domain in lower case and as A-labels: ${domain.value}.`)
}

/**
 * Where new hosted links of an app are.
 * @param linkDomain null if it is not in use
 * @param baseUrl that of the service, which has hosted links
 */
export const chooseLinkPlace = (linkDomain: string | null, baseUrl: string): LinkPlace =>
  linkDomain === null || linkDomain === new URL(baseUrl).hostname
    ? { baseUrl, domain: null }
    : { baseUrl: `https://${linkDomain}`, domain: linkDomain }
