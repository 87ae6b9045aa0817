/** The properties of an app's mail that DNS must agree with, and the checks of the domains of all apps. */
import { checkDomain, type DomainLine, type DomainSubject } from '../../dns/check-domain.ts'
import type { App } from '../../domain/app/app.ts'
import { chooseEnvelopeSender, chooseSenders, findBounceAddress, type Senders } from '../../domain/app/envelope.ts'
import { nameAll } from '../../domain/counts.ts'
import type { RelayTraits } from '../../domain/delivery/relay-traits.ts'
import { isReservedDomain } from '../../domain/delivery/reserved-domain.ts'
import type { SigningKey } from '../../domain/delivery/signing-key.ts'
import { type EmailAddress, readDomain } from '../../domain/request/email-address.ts'
import type { Finding } from '../../store/store.ts'
import type { Context } from '../operation/operation.ts'

export type DomainParts = Pick<Context, 'store' | 'newLookup' | 'relayTraits' | 'bounceAddress'>

/** The domain of an app's From address: its mail is signed for it, and judged by it. */
export const fromDomain = ({ settings }: App): string => readDomain(settings.from.address as EmailAddress)

export async function checkAppDomain(app: App, parts: DomainParts): Promise<readonly DomainLine[]> {
  const keys = await parts.store.listSigningKeys(fromDomain(app))
  return checkDomain(newSubject(app, keys, parts), parts.newLookup())
}

/** The domain of an app's mail, of its envelopes, and of the address that bounces go to. */
function mailDomains(
  app: App,
  { bounceAddress, relayTraits }: Pick<DomainParts, 'bounceAddress' | 'relayTraits'>,
): Pick<DomainSubject, 'domain' | 'envelopeDomain' | 'bounceDomain'> {
  const bounce = findBounceAddress(app.settings, bounceAddress)
  return {
    domain: fromDomain(app),
    envelopeDomain: findEnvelopeDomain(chooseSenders(app.settings, bounceAddress), relayTraits),
    bounceDomain: bounce === null ? null : readDomain(bounce),
  }
}

function newSubject(app: App, keys: readonly SigningKey[], parts: DomainParts): DomainSubject {
  const { include, rewrites } = parts.relayTraits
  return {
    ...mailDomains(app, parts),
    // A relay that composes the message sends no signature of ours.
    keys: rewrites === 'all' ? [] : keys,
    include,
  }
}

const findEnvelopeDomain = (senders: Senders, { envelope }: RelayTraits): string | null =>
  envelope === 'relay' ? null : readDomain(chooseEnvelopeSender(senders, envelope === 'from'))

/** The domains that are checked, and of each the envelopes; the others have to be asked for. */
const domainsMax = 20
const envelopesMax = 3

/**
 * One finding for each domain, or for each kind of envelope that its apps have. It fails if any line fails;
 * its detail names all lines that are not ok. It says what is left out.
 */
export async function checkDomains(parts: DomainParts): Promise<Finding[]> {
  const apps = (await parts.store.listApps()).filter(({ status }) => status === 'active')
  const subjects = new Map(apps.map((app) => [JSON.stringify(mailDomains(app, parts)), app]))
  const byDomain = Map.groupBy(subjects.values(), fromDomain)
  const reserved = [...byDomain.keys()].filter(isReservedDomain)
  const domains = [...byDomain].filter(([domain]) => !isReservedDomain(domain))
  const checks = domains.slice(0, domainsMax).flatMap(([domain, ofDomain]) =>
    ofDomain.slice(0, envelopesMax).map((app) => {
      const check = ofDomain.length === 1 ? `domain ${domain}` : `domain ${domain} (${app.slug})`
      return judgeDomain(check, app, parts)
    }),
  )
  const others = [
    ...domains.slice(domainsMax).map(([domain]) => domain),
    ...domains.slice(0, domainsMax).flatMap(([, apps]) => apps.slice(envelopesMax).map(({ slug }) => slug)),
  ]
  return [
    ...(await Promise.all(checks)),
    ...skip(reserved, 'reserved for tests and documentation, so its mail goes nowhere'),
    ...skip(others, 'only so many are checked here; "postern domain check APP" checks one'),
  ]
}

const skip = (names: readonly string[], why: string): Finding[] =>
  names.length === 0
    ? []
    : [{ check: `domain ${nameAll(names)}`, ok: true, isSkipped: true, detail: `not checked: ${why}` }]

async function judgeDomain(check: string, app: App, parts: DomainParts): Promise<Finding> {
  const lines = await checkAppDomain(app, parts)
  const noted = lines.filter(({ result }) => result !== 'ok')
  const detail = noted.map((line) => `${line.check.replace('_', ' ')}: ${line.message}`).join(' ')
  return {
    check,
    ok: noted.every(({ result }) => result !== 'fail'),
    detail:
      detail === ''
        ? 'keys, SPF, DMARC and MX are right'
        : `${detail} "postern domain check ${app.slug}" shows the records.`,
  }
}
