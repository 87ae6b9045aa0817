/** Lists the delivery keys of an app. */
import { operation } from '../operation.ts'
import { cutList, pageQuery } from '../pages.ts'
import { KeyResource, listOf, presentKey } from '../resources.ts'
import { closed } from '../schema.ts'

export const listKeys = operation({
  method: 'GET',
  path: '/v1/apps/{app}/keys',
  role: 'reader',
  target: 'app',
  summary: 'Lists the delivery keys of an app, oldest first, also those that have ended.',
  query: closed(pageQuery),
  answer: listOf(KeyResource),
  refusals: ['cursor_mismatch'],
  run: async (context, { query }, { id }) =>
    cutList(context, (await context.store.listKeys(id)).map(presentKey), query, { list: 'keys', app: id }),
})
