/** Counts an app's emails and refusals, by day. */
import { operation } from '../operation.ts'
import { listOf, presentUsage, UsageResource } from '../resources.ts'
import { done } from '../result.ts'

export const showUsage = operation({
  method: 'GET',
  path: '/v1/apps/{app}/usage',
  role: 'reader',
  target: 'app',
  summary: 'Counts the emails and refusals of an app, by day (UTC), newest first, for 30 days.',
  answer: listOf(UsageResource),
  run: async ({ store }, _input, { id }) =>
    done({ items: (await store.usage(id)).map(presentUsage), next: null }),
})
