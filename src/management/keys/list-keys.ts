/** Lists the delivery keys of an app. */

import type { KeyId } from '../../domain/id.ts'
import { cutList, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, newPageSchema, presentKey } from '../resources.ts'

export const listKeys = operation({
  method: 'GET',
  path: '/v1/apps/{app}/keys',
  role: 'reader',
  summary: 'Lists the delivery keys of an app, oldest first, including revoked and expired ones.',
  query: closed(pageQuery),
  answer: newPageSchema(KeyResource),
  errors: ['cursor_mismatch'],
  async run(context, { query }, { id }) {
    const filters = { list: 'keys', app: id } as const
    const cursor = readCursor<KeyId>(context, query, filters)
    if (!cursor.ok) return cursor
    // One more tells whether there is a next page.
    const keys = await context.store.listKeys(id, cursor.value, readLimit(query) + 1)
    return cutList(context, keys.map(presentKey), query, filters)
  },
})
