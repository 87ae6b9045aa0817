/** Lists and shows apps. */
import { Type } from 'typebox'
import { isInScope } from '../operation/access.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, newPageSchema, presentApp } from '../resources.ts'

export const listApps = operation({
  method: 'GET',
  path: '/v1/apps',
  role: 'reader',
  summary: 'Lists the apps, oldest first.',
  query: closed(pageQuery),
  answer: newPageSchema(AppResource),
  errors: ['cursor_mismatch'],
  async run(context, { query }) {
    const { store, access } = context
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    return cutList(context, apps.map(presentApp), query, { list: 'apps' })
  },
})

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

export const showApp = operation({
  method: 'GET',
  path: '/v1/apps/{app}',
  role: 'reader',
  summary: 'Shows an app by its slug or id.',
  answer: AppResource,
  versioned: true,
  run: (_context, _input, app) => done(presentApp(app)),
})
