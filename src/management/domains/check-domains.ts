/** Checks the domains of all apps, for `doctor` and the checks of the service. */
import type { App } from '../../domain/app/app.ts'
import { isReservedDomain } from '../../domain/delivery/reserved-domain.ts'
import type { Finding } from '../../store/store.ts'
import { checkAppDomain, type DomainParts, findDomain } from './domain-subject.ts'

/** The domains that are checked; the others have to be asked for. */
const domainsMax = 20

/**
 * One finding for each domain, and for each domain of its envelopes. It fails if a line does; other lines are
 * named.
 */
export async function checkDomains(parts: DomainParts): Promise<Finding[]> {
  const apps = (await parts.store.listApps()).filter(({ status }) => status === 'active')
  const nameEnvelope = ({ settings }: App) => settings.envelopeFrom?.split('@').at(-1) ?? ''
  const subjects = new Map(apps.map((app) => [`${findDomain(app)} ${nameEnvelope(app)}`, app]))
  const checked = [...subjects.values()].filter((app) => !isReservedDomain(findDomain(app)))
  return Promise.all(
    checked.slice(0, domainsMax).map(async (app) => {
      const lines = await checkAppDomain(app, parts)
      const noted = lines.filter(({ result }) => result !== 'ok')
      const detail = noted.map(({ check, message }) => `${check.replace('_', ' ')}: ${message}`).join(' ')
      return {
        check: `domain ${findDomain(app)}`,
        ok: noted.every(({ result }) => result !== 'fail'),
        detail:
          detail === ''
            ? 'keys, SPF, DMARC and MX are right'
            : `${detail} "postern domain check ${app.slug}" shows the records.`,
      }
    }),
  )
}
