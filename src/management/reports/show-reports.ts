/** Shows where reports about emails come in, and how many came. */
import { Type } from 'typebox'
import { reportedDays } from '../../domain/bounds.ts'
import { eventServices, reportSources } from '../../services/services.ts'
import { ActivityCounts } from '../activity.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { isoOrNull } from '../resources.ts'
import { findBounceBases } from '../service/check-bounces.ts'

const { bounced, complained } = ActivityCounts.properties

export const showReports = operation({
  method: 'GET',
  path: '/v1/reports',
  role: 'reader',
  wholeService: true,
  summary: `Shows where reports come in at the process that answers, when each source was last heard, and the bounces and complaints of the last ${reportedDays} days.`,
  answer: closed({
    bounceAddress: orNull(Type.String({ description: 'Each email gets a bounce address of its own from it.' })),
    apps: Type.Array(Type.String(), {
      description: 'The slugs of the apps with such an address of their own.',
    }),
    bounceListener: orNull(Type.String({ description: 'Where the process that answers takes reports by SMTP.' })),
    reportsListener: orNull(
      Type.String({ description: 'Where the process that answers takes webhooks of mail providers.' }),
    ),
    providers: Type.Array(Type.Enum(eventServices.map(({ name }) => name)), {
      description: 'Those whose calls it can verify.',
    }),
    sources: Type.Array(closed({ source: Type.Enum([...reportSources]), heardAt: time() }), {
      description: 'The sources that were heard so far, and when the last report of each came.',
    }),
    bounced,
    complained,
    lastAt: orNull(time()),
  }),
  async run({ store, bounceAddress, bounceListener, reportsListener, reportProviders, reports }) {
    const { lastAt, ...counts } = await reports.get()
    const heard = await store.listReportSources()
    const apps = findBounceBases(await store.listApps()).map(({ slug }) => slug)
    return done({
      ...{ bounceAddress, apps, bounceListener, reportsListener, providers: [...reportProviders] },
      sources: heard.map(({ heardAt, source }) => ({ source, heardAt: new Date(heardAt).toISOString() })),
      ...counts,
      lastAt: isoOrNull(lastAt),
    })
  },
})
