/** Whether people who open a hosted link at the domain of an app reach the pages of this service. */
import type { DomainLine } from '../../dns/check-domain.ts'
import type { App } from '../../domain/app/app.ts'
import type { Finding } from '../../store/store.ts'
import type { Management } from '../context.ts'

type Probe = Pick<Management, 'probeLinkDomain'>

/** No line for an app without a link domain. */
export async function checkLinkDomain({ settings, slug }: App, { probeLinkDomain }: Probe): Promise<DomainLine[]> {
  const { linkDomain, useLinkDomain } = settings
  if (linkDomain === undefined) return []
  const line = { check: 'link_domain', name: linkDomain, found: null, publish: null } as const
  const { isOurs, status, why } = await probeLinkDomain(linkDomain)
  if (!isOurs) return [{ ...line, result: 'fail', message: explain(status, why) }]
  if (useLinkDomain) return [{ ...line, result: 'ok', message: reaches }]
  const message = `${reaches} To put new hosted links there: "postern app update ${slug} --use-link-domain".`
  return [{ ...line, result: 'warn', message }]
}

const reaches = 'It reaches this service.'

/** The others have to be checked one by one. */
const checkedMax = 20

/** One finding for each domain that new links of apps use. */
export async function checkLinkDomains(apps: readonly App[], { probeLinkDomain }: Probe): Promise<Finding[]> {
  const using = apps.filter(({ settings, status }) => status === 'active' && settings.useLinkDomain)
  const domains = [...new Set(using.flatMap(({ settings }) => settings.linkDomain ?? []))].slice(0, checkedMax)
  return Promise.all(
    domains.map(async (domain) => {
      const { isOurs, status, why } = await probeLinkDomain(domain)
      const detail = isOurs ? 'reaches this service' : explain(status, why)
      return { check: `link domain ${domain}`, ok: isOurs, detail }
    }),
  )
}

function explain(status: number | null, why: string): string {
  if (status === null)
    return `No answer over HTTPS: ${why}. Its DNS must point to the proxy in front of Postern, and the proxy needs a certificate for it.`
  return status === 200
    ? 'Another server answered, or a Postern with a different key ring.'
    : `The answer was ${status}. Forward the domain, with its Host header, to the port of hosted links.`
}
