/** Lists the delivery keys of an app. */

import { cutList, pageQuery } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, newPageSchema, presentKey } from '../resources.ts'

export const listKeys = operation({
  method: 'GET',
  path: '/v1/apps/{app}/keys',
  role: 'reader',
  target: 'app',
  summary: 'Lists the delivery keys of an app, oldest first, including revoked and expired ones.',
  query: closed(pageQuery),
  answer: newPageSchema(KeyResource),
  errors: ['cursor_mismatch'],
  run: async (context, { query }, { id }) =>
    cutList(context, (await context.store.listKeys(id)).map(presentKey), query, { list: 'keys', app: id }),
})
