/** Shows where reports about emails come in, and how many came. */
import { Type } from 'typebox'
import { reportedDays } from '../../domain/bounds.ts'
import { ActivityCounts } from '../activity.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { isoOrNull } from '../resources.ts'
import { findBounceBases } from '../service/check-bounces.ts'

const { bounced, complained } = ActivityCounts.properties

export const showFeedback = operation({
  method: 'GET',
  path: '/v1/feedback',
  role: 'reader',
  target: 'none',
  wholeService: true,
  summary: `Shows the bounce address, the bounce listener of the process that answers, and the bounces and complaints of the last ${reportedDays} days.`,
  answer: closed({
    bounceAddress: orNull(
      Type.String({ description: 'Each email gets a bounce address of its own from it.' }),
    ),
    apps: Type.Array(Type.String(), {
      description: 'The slugs of the apps with such an address of their own.',
    }),
    bounceListener: orNull(
      Type.String({ description: 'Where the process that answers takes reports by SMTP.' }),
    ),
    bounced,
    complained,
    lastAt: orNull(time()),
  }),
  async run({ store, bounceAddress, bounceListener, reports }) {
    const { lastAt, ...counts } = await reports.get()
    const apps = findBounceBases(await store.listApps()).map(({ slug }) => slug)
    return done({ bounceAddress, apps, bounceListener, ...counts, lastAt: isoOrNull(lastAt) })
  },
})
