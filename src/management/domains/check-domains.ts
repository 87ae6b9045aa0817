/** Checks the domains of all apps, for `doctor` and the checks of the service. */
import { isReservedDomain } from '../../domain/delivery/reserved-domain.ts'
import type { Finding } from '../../store/store.ts'
import { checkAppDomain, type DomainParts, findDomain } from './domain-subject.ts'

/** The domains that are checked; the others have to be asked for. */
const domainsMax = 20

/** One finding for each domain. It fails if a line does; other lines are named. */
export async function checkDomains(parts: DomainParts): Promise<Finding[]> {
  const apps = (await parts.store.listApps()).filter(({ status }) => status === 'active')
  const byDomain = new Map(apps.map((app) => [findDomain(app), app]))
  const domains = [...byDomain].filter(([domain]) => !isReservedDomain(domain)).slice(0, domainsMax)
  return Promise.all(
    domains.map(async ([domain, app]) => {
      const lines = await checkAppDomain(app, parts)
      const noted = lines.filter(({ result }) => result !== 'ok')
      const detail = noted.map(({ check, message }) => `${check.replace('_', ' ')}: ${message}`).join(' ')
      return {
        check: `domain ${domain}`,
        ok: noted.every(({ result }) => result !== 'fail'),
        detail:
          detail === ''
            ? 'keys, SPF, DMARC and MX are right'
            : `${detail} "postern domain check ${app.slug}" shows the records.`,
      }
    }),
  )
}
