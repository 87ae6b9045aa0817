/** Checks the domains of all apps, for `doctor` and the checks of the service. */
import type { App } from '../../domain/app/app.ts'
import { isReservedDomain } from '../../domain/delivery/reserved-domain.ts'
import type { Finding } from '../../store/store.ts'
import { checkAppDomain, type DomainParts, fromDomain, mailDomains } from './domain-subject.ts'

/** The domains that are checked, and of each the envelopes; the others have to be asked for. */
const domainsMax = 20
const envelopesMax = 3

/**
 * One finding for each domain, or for each kind of envelope that its apps have. It fails if any line fails;
 * its detail names all lines that are not ok.
 */
export async function checkDomains(parts: DomainParts): Promise<Finding[]> {
  const apps = (await parts.store.listApps()).filter(({ status }) => status === 'active')
  const subjects = new Map(apps.map((app) => [JSON.stringify(mailDomains(app, parts)), app]))
  const byDomain = Map.groupBy(subjects.values(), fromDomain)
  const domains = [...byDomain].filter(([domain]) => !isReservedDomain(domain)).slice(0, domainsMax)
  const checks = domains.flatMap(([domain, ofDomain]) =>
    ofDomain.slice(0, envelopesMax).map((app) => {
      const check = ofDomain.length === 1 ? `domain ${domain}` : `domain ${domain} (${app.slug})`
      return judgeDomain(check, app, parts)
    }),
  )
  return Promise.all(checks)
}

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
