/** Lists apps. */
import { isInScope } from '../operation/access.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
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
