/** The name by which the service greets its relays in EHLO. Many refuse one without a dot. */
import { hostname } from 'node:os'
import { readDomain, toDomainName } from '../domain/request/email-address.ts'
import type { ListenersConfig } from './listeners.ts'
import type { Reader } from './reader.ts'
import type { ReportsConfig } from './reports.ts'

const setting = 'POSTERN_SMTP_NAME'
export const greetingForm = 'a host name with a dot, such as mail.example.com'

/** Names that no public DNS knows (RFC 6761, 6762, 8375, and those of routers and Kubernetes). */
const unknownToDns = /(?:^|\.)(?:localhost|localdomain\d*|local|lan|home\.arpa|invalid)$/

/** The name as it is sent; null if relays would refuse it. */
export function toGreetingName(text: string): string | null {
  const name = toDomainName(text.replace(/\.$/, ''))
  return name === null || unknownToDns.test(name) ? null : name
}

type Names = Pick<ReportsConfig, 'bounceAddress'> & Pick<ListenersConfig, 'linksBaseUrl'>

/**
 * The setting, or else the first name that relays accept: the machine's, the host of hosted links, or the
 * domain of the bounce address. Null if there is none: the domain of the sender is used then.
 */
export function readGreetingName(
  { fault, text }: Reader,
  { bounceAddress, linksBaseUrl }: Names,
  machine = hostname(),
): string | null {
  const given = text(setting)
  if (given !== '') {
    const name = toGreetingName(given)
    if (name === null) fault(`${setting} must be ${greetingForm}`)
    return name
  }
  const linksHost = linksBaseUrl === null ? '' : (URL.parse(linksBaseUrl)?.hostname ?? '')
  const bounceDomain = bounceAddress === null ? '' : readDomain(bounceAddress)
  const names = [machine, linksHost, bounceDomain].map(toGreetingName)
  return names.find((name) => name !== null) ?? null
}
