/** Deletes an app that is disabled, with its keys, and cancels its queued mail. */
import { Type } from 'typebox'
import type { AppId } from '../../domain/id.ts'
import type { Store } from '../../store/store.ts'
import { appNotFound } from '../find-target.ts'
import { operation } from '../operation.ts'
import { done, refuse } from '../result.ts'
import { closed } from '../schema.ts'

/** How long the answer waits for mail to be cancelled. Mail that is left then is cancelled by the service's maintenance. */
const cancelMs = 5000

export const deleteApp = operation({
  method: 'DELETE',
  path: '/v1/apps/{app}',
  role: 'admin',
  target: 'app',
  wholeService: true,
  summary:
    'Deletes an app that is disabled, with its keys, and cancels its queued mail. It cannot be undone.',
  answer: closed({
    id: Type.String(),
    slug: Type.String(),
    cancelled: Type.Integer({ description: 'Emails that were cancelled.' }),
    complete: Type.Boolean({ description: 'False if more mail is being cancelled.' }),
  }),
  refusals: ['app_active'],
  async run({ store, access }, { params }, { id, slug }) {
    const result = await store.deleteApp(id, access.actor)
    if (result === null) return appNotFound(params.app)
    if (result === 'active')
      return refuse(
        'app_active',
        `The app "${slug}" is active: disable it first, so that its keys stop working.`,
      )
    return done({ id, slug, ...(await cancelMail(store, id)) })
  },
})

async function cancelMail(
  store: Pick<Store, 'cancelDeletedAppMail'>,
  id: AppId,
): Promise<{ cancelled: number; complete: boolean }> {
  const endMs = performance.now() + cancelMs
  let cancelled = 0
  do {
    const step = await store.cancelDeletedAppMail(id)
    if (step === 0) return { cancelled, complete: true }
    cancelled += step
  } while (performance.now() < endMs)
  return { cancelled, complete: false }
}
