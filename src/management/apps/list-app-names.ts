/** Lists the slugs of apps by id, for showing what names an app by its id, and which are disabled. */
import { Type } from 'typebox'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

export const listAppNames = operation({
  method: 'GET',
  path: '/v1/app-names',
  role: 'reader',
  summary: 'Lists the slugs of all apps by id, and the ids of those that are disabled or suspended, in one answer.',
  answer: closed({
    slugs: Type.Record(Type.String(), Type.String()),
    disabled: Type.Array(Type.String()),
  }),
  async run({ store, access }) {
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    return done({
      slugs: Object.fromEntries(apps.map(({ id, slug }) => [id, slug])),
      disabled: apps.filter(({ status }) => status !== 'active').map(({ id }) => id),
    })
  },
})
