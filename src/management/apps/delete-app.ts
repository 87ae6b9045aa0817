/** Deletes an app that is disabled, with its keys, and cancels its queued mail. */
import { Type } from 'typebox'
import type { AppId } from '../../domain/id.ts'
import { appNotFound } from '../operation/find-target.ts'
import { always, type Context, forAdmins, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

/**
 * How long the answer waits for mail to be cancelled. Mail that is left then is cancelled by the service's
 * maintenance.
 */
const cancelMs = 5000

export const deleteApp = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/apps/{app}',
  summary: 'Deletes a disabled or suspended app and its keys, and cancels its queued mail. This cannot be undone.',
  answer: closed({
    id: Type.String(),
    slug: Type.String(),
    cancelled: Type.Integer({ description: 'The number of cancelled emails.' }),
    complete: Type.Boolean({
      description: 'False if more mail is still to be cancelled; the service continues with it.',
    }),
  }),
  outlives: always,
  errors: ['app_active'],
  async run(context, { params }, { id, slug }) {
    const { store, access } = context
    const result = await store.deleteApp(id, access.actor)
    if (result === null) return appNotFound(params.app)
    if (result === 'active')
      return fail('app_active', `The app "${slug}" is active: disable it first, so that its keys stop working.`)
    return done({ id, slug, ...(await cancelMail(context, id)) })
  },
})

async function cancelMail({ store, emit }: Context, id: AppId): Promise<{ cancelled: number; complete: boolean }> {
  const endMs = performance.now() + cancelMs
  let cancelled = 0
  do {
    const ended = await store.cancelDeletedAppMail(id)
    if (ended.length === 0) return { cancelled, complete: true }
    emit({ kind: 'emails_ended', ended })
    cancelled += ended.length
  } while (performance.now() < endMs)
  return { cancelled, complete: false }
}
