/**
 * The domains that an app sends from. An app's own people choose addresses only inside them, and the signing
 * keys of a domain sign only for the apps that have it. A domain covers no subdomain: another app may have
 * that one, and SPF, DKIM and DMARC are published for it separately.
 */
import { parse as parseDomain } from 'tldts'
import type { AppId } from '../id.ts'
import { type Issue, type Parsed, parsed, refuser, valuesOf } from '../parsed.ts'
import { parseEmailAddress, parsePlainAddress, readDomain } from '../request/email-address.ts'

/** An app sends from one domain, and receives bounces at another; a few more are for a move. */
export const senderDomainsMax = 20

/** Reads a domain that somebody can register: in lower case, and as A-labels. */
export function parseSenderDomain(text: string, field = 'senderDomains'): Parsed<string> {
  const refuse = refuser(field)
  const address = parseEmailAddress(`postmaster@${text}`, field)
  if (!address.ok)
    return refuse('malformed_domain', 'Write a domain name alone, with a dot in it, such as acme.example.')
  const domain = readDomain(address.value)
  if (parseDomain(domain).domain !== null) return parsed(domain)
  return refuse('public_suffix', `${domain} is a public suffix, below which anybody can register a domain.`)
}

type Sender = {
  readonly from: { readonly address: string }
  readonly envelopeFrom?: string
  readonly senderDomains: readonly string[]
}

/** The domains of the addresses, which an app must have. Malformed addresses have issues of their own. */
const addressDomains = ({ from, envelopeFrom }: Sender): [field: string, domain: string][] =>
  Object.entries({ 'from.address': from.address, ...(envelopeFrom && { envelopeFrom }) }).flatMap(([field, address]) =>
    valuesOf([parsePlainAddress(address, field)]).map((valid): [string, string] => [field, readDomain(valid)]),
  )

export function checkSenderDomains(sender: Sender): Issue[] {
  const { senderDomains } = sender
  if (senderDomains.length > senderDomainsMax) {
    const message = `An app has at most ${senderDomainsMax} sender domains.`
    return [{ field: 'senderDomains', code: 'too_many', message }]
  }
  return addressDomains(sender).flatMap(([field, domain]) => {
    if (senderDomains.includes(domain)) return []
    const message = `${domain} is not a sender domain of this app. Choose an address in one of its sender domains (${senderDomains.join(', ') || 'it has none'}). An admin of the whole service can add a domain, or you can prove in DNS that it is yours: "postern domain prove APP ${domain}".`
    return [{ field, code: 'foreign_domain', message }]
  })
}

/** The sender domains and those of the addresses: an admin of the whole service gives them this way. */
export const withAddressDomains = (sender: Sender): string[] => [
  ...new Set([...sender.senderDomains, ...addressDomains(sender).map(([, domain]) => domain)]),
]

/** Whether the signing keys of a domain may sign the mail of an app. */
export const hasDomain = ({ senderDomains }: Pick<Sender, 'senderDomains'>, domain: string): boolean =>
  senderDomains.includes(domain)

/** The TXT record by which the owner of a domain gives it to one app: ids of apps are never used again. */
export const proofRecord = (app: AppId, domain: string): { readonly name: string; readonly value: string } => ({
  name: `_postern.${domain}`,
  value: `postern-app=${app}`,
})
