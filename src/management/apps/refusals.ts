/** Shows the requests of an app that were refused lately. */
import { recordEveryMs } from '../../domain/operator/activity.ts'
import { refusalsMax } from '../../domain/request/refused-request.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { newPageSchema, presentRefusal, RefusalResource } from '../resources.ts'

export const listRefusals = operation({
  method: 'GET',
  path: '/v1/apps/{app}/refusals',
  role: 'reader',
  summary: `Lists the newest ${refusalsMax} refused requests of an app, and ${refusalsMax} that were over a limit, newest first. They appear within ${recordEveryMs / 1000} seconds.`,
  answer: newPageSchema(RefusalResource),
  run: async ({ store }, _input, { id }) =>
    done({ items: (await store.listRefusals(id)).map(presentRefusal), next: null }),
})

export const showRefusal = operation({
  method: 'GET',
  path: '/v1/refusals/{request}',
  role: 'reader',
  target: 'refusal',
  summary: 'Shows a refused request by the `requestId` of its answer.',
  answer: RefusalResource,
  run: (_context, _input, refusal) => done(presentRefusal(refusal)),
})
