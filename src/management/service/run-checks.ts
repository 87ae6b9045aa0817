/** Checks the database, the machine, the bounce address, domains and relays. Sends no email. */
import { Type } from 'typebox'
import { checkAuthHooks } from '../auth-hooks/find-auth-hook-faults.ts'
import { checkLinkDomains } from '../domains/check-link-domain.ts'
import { checkDomains } from '../domains/domain-subject.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { FindingResource } from '../resources.ts'
import { checkBounces, checkReports } from './check-bounces.ts'
import { checkDatabase } from './check-database.ts'

export const runChecks = operation({
  method: 'POST',
  path: '/v1/checks',
  role: 'operator',
  wholeService: true,
  summary:
    'Checks database, disk, worker, bounce address, reports listener, auth servers, domains, link domains and relays from the process that answers. Takes up to 30 s.',
  answer: closed({ ok: Type.Boolean(), findings: Type.Array(FindingResource) }),
  async run(context) {
    const { store, access, relays, findings: examined, links } = context
    const [apps, sources, authHookKeys, domains, relayFindings] = await Promise.all([
      store.listApps(),
      store.listReportSources(),
      store.listAuthHookKeys(),
      checkDomains(context),
      relays.get(),
    ])
    const findings = [
      ...(await checkDatabase(store, () => examined.get())),
      checkBounces(context, apps),
      checkReports(context, sources, store.now()),
      ...checkAuthHooks({ ...context, linksBaseUrl: links.baseUrl }, apps, authHookKeys),
      ...domains,
      ...(await checkLinkDomains(apps, context)),
      ...relayFindings,
    ]
    await store.recordAction(
      { action: 'checks.run', app: null, target: 'service', before: null, after: null },
      access.actor,
    )
    const shown = findings.map(({ check, ok, detail, isSkipped }) => ({
      check,
      ok,
      detail,
      ...(isSkipped && { isSkipped }),
    }))
    await store.keepCheck('service', shown)
    return done({ ok: shown.every(({ ok }) => ok), findings: shown })
  },
})
