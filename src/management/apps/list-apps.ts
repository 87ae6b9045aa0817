/** Lists apps. */
import { Type } from 'typebox'
import { isInScope } from '../access.ts'
import { operation } from '../operation.ts'
import { cutList, pageQuery } from '../pages.ts'
import { AppResource, listOf, presentApp } from '../resources.ts'

export const listApps = operation({
  method: 'GET',
  path: '/v1/apps',
  role: 'reader',
  target: 'scope',
  summary: 'Lists the apps, oldest first.',
  query: Type.Object(pageQuery, { additionalProperties: false }),
  answer: listOf(AppResource),
  refusals: ['cursor_mismatch'],
  async run({ store, access }, { query }) {
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    return cutList(apps.map(presentApp), query)
  },
})
